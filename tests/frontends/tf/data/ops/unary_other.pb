
4
in0Placeholder*
dtype0*
shape
:
4
in1Placeholder*
dtype0*
shape
:

AbsAbsin0*
T0

FloorFloorin0*
T0

NegNegin0*
T0

ReluReluin0*
T0

Relu6Relu6in0*
T0

SignSignin0*
T0

SquareSquarein0*
T0
"
SoftplusSoftplusin0*
T0

EluEluin0*
T0

SeluSeluin0*
T0
4
	LeakyRelu	LeakyReluin0*
T0*
alpha%ÍÌL>
"
SoftsignSoftsignin0*
T0

ExpExpin0*
T0
 
SigmoidSigmoidin0*
T0

TanhTanhin0*
T0

RintRintin0*
T0

RoundRoundin0*
T0

LogLogin1*
T0

SqrtSqrtin1*
T0

RsqrtRsqrtin1*
T0
&

Reciprocal
Reciprocalin1*
T0

Log1pLog1pin1*
T0
4
in2Placeholder*
dtype0*
shape
:
4
in3Placeholder*
dtype0*
shape
:

Abs_1Absin2*
T0

Floor_1Floorin2*
T0

Neg_1Negin2*
T0

Relu_1Reluin2*
T0

Relu6_1Relu6in2*
T0

Sign_1Signin2*
T0
 
Square_1Squarein2*
T0
$

Softplus_1Softplusin2*
T0

Elu_1Eluin2*
T0

Selu_1Seluin2*
T0
6
LeakyRelu_1	LeakyReluin2*
T0*
alpha%ÍÌL>
$

Softsign_1Softsignin2*
T0

Exp_1Expin2*
T0
"
	Sigmoid_1Sigmoidin2*
T0

Tanh_1Tanhin2*
T0

Round_1Roundin2*
T0

Log_1Login3*
T0

Sqrt_1Sqrtin3*
T0

Rsqrt_1Rsqrtin3*
T0
(
Reciprocal_1
Reciprocalin3*
T0

Log1p_1Log1pin3*
T0
4
in4Placeholder*
dtype0*
shape
:
4
in5Placeholder*
dtype0*
shape
:

Abs_2Absin4*
T0

Floor_2Floorin4*
T0

Neg_2Negin4*
T0

Relu_2Reluin4*
T0

Relu6_2Relu6in4*
T0

Sign_2Signin4*
T0
 
Square_2Squarein4*
T0
$

Softplus_2Softplusin4*
T0

Elu_2Eluin4*
T0

Selu_2Seluin4*
T0
6
LeakyRelu_2	LeakyReluin4*
T0*
alpha%ÍÌL>
$

Softsign_2Softsignin4*
T0

Exp_2Expin4*
T0
"
	Sigmoid_2Sigmoidin4*
T0

Tanh_2Tanhin4*
T0

Round_2Roundin4*
T0

Log_2Login5*
T0

Sqrt_2Sqrtin5*
T0

Rsqrt_2Rsqrtin5*
T0
(
Reciprocal_2
Reciprocalin5*
T0

Log1p_2Log1pin5*
T0
4
in6Placeholder*
dtype0*
shape
:

SinSinin6*
T0

CosCosin6*
T0

ErfErfin6*
T0

ErfcErfcin6*
T0

Expm1Expm1in6*
T0

AtanAtanin6*
T0

SinhSinhin6*
T0

CoshCoshin6*
T0

AsinhAsinhin6*
T0

CeilCeilin6*
T0
4
in7Placeholder*
dtype0*
shape
:

Abs_3Absin7*
T0

Neg_3Negin7*
T0

Sign_3Signin7*
T0
 
Square_3Squarein7*
T0

Relu_3Reluin7*
T0

Relu6_3Relu6in7*
T0

InvertInvertin7*
T0
4
in8Placeholder*
dtype0*
shape
:

Abs_4Absin8*
T0

Neg_4Negin8*
T0

Sign_4Signin8*
T0
 
Square_4Squarein8*
T0

Relu_4Reluin8*
T0

Relu6_4Relu6in8*
T0
 
Invert_1Invertin8*
T0
4
in9Placeholder*
dtype0*
shape
:

Abs_5Absin9*
T0

Neg_5Negin9*
T0

Sign_5Signin9*
T0
 
Square_5Squarein9*
T0

Relu_5Reluin9*
T0

Relu6_5Relu6in9*
T0
 
Invert_2Invertin9*
T0
5
in10Placeholder*
dtype0	*
shape
:

Abs_6Absin10*
T0	

Neg_6Negin10*
T0	

Sign_6Signin10*
T0	
!
Square_6Squarein10*
T0	

Relu_6Reluin10*
T0	

Relu6_6Relu6in10*
T0	
!
Invert_3Invertin10*
T0	
5
in11Placeholder*
dtype0*
shape
:
!
Invert_4Invertin11*
T0
1
PopulationCountPopulationCountin11*
T0
5
in12Placeholder*
dtype0*
shape
:
!
Invert_5Invertin12*
T0
3
PopulationCount_1PopulationCountin12*
T0
5
in13Placeholder*
dtype0*
shape
:
!
Invert_6Invertin13*
T0
3
PopulationCount_2PopulationCountin13*
T0
5
in14Placeholder*
dtype0*
shape
:
!
Invert_7Invertin14*
T0
3
PopulationCount_3PopulationCountin14*
T0
1
in15Placeholder*
dtype0*
shape:

Relu_7Reluin15*
T0
5
in16Placeholder*
dtype0*
shape
:
3
PopulationCount_4PopulationCountin16*
T0
5
in17Placeholder*
dtype0	*
shape
:
3
PopulationCount_5PopulationCountin17*
T0	
5
in18Placeholder*
dtype0
*
shape
:


LogicalNot
LogicalNotin18"ª