
4
in0Placeholder*
dtype0*
shape
:
0
in1Placeholder*
dtype0*
shape:

AbsAbsin0*
T0

Abs_1Absin1*
T0

AtanAtanin0*
T0

Atan_1Atanin1*
T0

CeilCeilin0*
T0

Ceil_1Ceilin1*
T0

CosCosin0*
T0

EluEluin0*
T0

Elu_1Eluin1*
T0

ErfErfin0*
T0

Erf_1Erfin1*
T0

ErfcErfcin0*
T0

Erfc_1Erfcin1*
T0

ExpExpin0*
T0

Exp_1Expin1*
T0

Expm1Expm1in0*
T0

Expm1_1Expm1in1*
T0

FloorFloorin0*
T0

Floor_1Floorin1*
T0
"
IsFiniteIsFinitein0*
T0
$

IsFinite_1IsFinitein1*
T0

IsInfIsInfin0*
T0

IsInf_1IsInfin1*
T0

IsNanIsNanin0*
T0

IsNan_1IsNanin1*
T0

NegNegin0*
T0

Neg_1Negin1*
T0

RintRintin0*
T0

Rint_1Rintin1*
T0

RoundRoundin0*
T0

Round_1Roundin1*
T0

SeluSeluin0*
T0

Selu_1Seluin1*
T0
 
SigmoidSigmoidin0*
T0
"
	Sigmoid_1Sigmoidin1*
T0

SignSignin0*
T0

Sign_1Signin1*
T0

SinSinin0*
T0

SinhSinhin0*
T0

Sinh_1Sinhin1*
T0

CoshCoshin0*
T0

Cosh_1Coshin1*
T0

SquareSquarein0*
T0
 
Square_1Squarein1*
T0

TanhTanhin0*
T0

Tanh_1Tanhin1*
T0

AsinhAsinhin0*
T0

Asinh_1Asinhin1*
T0

ReluReluin0*
T0

Relu_1Reluin1*
T0

Relu6Relu6in0*
T0

Relu6_1Relu6in1*
T0
4
	LeakyRelu	LeakyReluin0*
T0*
alpha%ÍÌL>
6
LeakyRelu_1	LeakyReluin1*
T0*
alpha%ÍÌL>
"
SoftplusSoftplusin0*
T0
$

Softplus_1Softplusin1*
T0
"
SoftsignSoftsignin0*
T0
$

Softsign_1Softsignin1*
T0
6
LeakyRelu_2	LeakyReluin0*
T0*
alpha%š™™>
4
in2Placeholder*
dtype0*
shape
:

LogLogin2*
T0

Log_1Login1*
T0

Log1pLog1pin2*
T0

Log1p_1Log1pin1*
T0

RsqrtRsqrtin2*
T0

Rsqrt_1Rsqrtin1*
T0

SqrtSqrtin2*
T0

Sqrt_1Sqrtin1*
T0
&

Reciprocal
Reciprocalin2*
T0
(
Reciprocal_1
Reciprocalin1*
T0

InvInvin2*
T0

Inv_1Invin1*
T0
4
in3Placeholder*
dtype0*
shape
:

AcosAcosin3*
T0

AsinAsinin3*
T0

AtanhAtanhin3*
T0

TanTanin3*
T0
0
in4Placeholder*
dtype0*
shape:

Log1p_2Log1pin4*
T0

Expm1_2Expm1in4*
T0

Erf_2Erfin4*
T0

Tanh_2Tanhin4*
T0

Asinh_2Asinhin4*
T0

Sinh_2Sinhin4*
T0
4
in5Placeholder*
dtype0*
shape
:

AcoshAcoshin5*
T0

ErfinvErfinvin3*
T0
0
in6Placeholder*
dtype0*
shape:


Erfc_2Erfcin6*
T0
0
in7Placeholder*
dtype0*
shape:


LgammaLgammain7*
T0
0
in8Placeholder*
dtype0*
shape:
 
Lgamma_1Lgammain8*
T0
4
in9Placeholder*
dtype0*
shape
:

NdtriNdtriin9*
T0"ª