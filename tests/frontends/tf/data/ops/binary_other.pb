
4
in0Placeholder*
dtype0*
shape
:
4
in1Placeholder*
dtype0*
shape
:

AddAddin0in1*
T0
!
AddV2AddV2in0in1*
T0

SubSubin0in1*
T0

MulMulin0in1*
T0
%
MaximumMaximumin0in1*
T0
%
MinimumMinimumin0in1*
T0
9
SquaredDifferenceSquaredDifferencein0in1*
T0
A
EqualEqualin0in1*
T0*
incompatible_shape_error(
G
NotEqualNotEqualin0in1*
T0*
incompatible_shape_error(
%
GreaterGreaterin0in1*
T0
/
GreaterEqualGreaterEqualin0in1*
T0

LessLessin0in1*
T0
)
	LessEqual	LessEqualin0in1*
T0
%
RealDivRealDivin0in1*
T0
4
in2Placeholder*
dtype0*
shape
:

PowPowin2in1*
T0
4
in3Placeholder*
dtype0*
shape
:
4
in4Placeholder*
dtype0*
shape
:

Add_1Addin3in4*
T0
#
AddV2_1AddV2in3in4*
T0

Sub_1Subin3in4*
T0

Mul_1Mulin3in4*
T0
'
	Maximum_1Maximumin3in4*
T0
'
	Minimum_1Minimumin3in4*
T0
;
SquaredDifference_1SquaredDifferencein3in4*
T0
C
Equal_1Equalin3in4*
T0*
incompatible_shape_error(
I

NotEqual_1NotEqualin3in4*
T0*
incompatible_shape_error(
'
	Greater_1Greaterin3in4*
T0
1
GreaterEqual_1GreaterEqualin3in4*
T0
!
Less_1Lessin3in4*
T0
+
LessEqual_1	LessEqualin3in4*
T0
'
	RealDiv_1RealDivin3in4*
T0
4
in5Placeholder*
dtype0*
shape
:

Pow_1Powin5in4*
T0
4
in6Placeholder*
dtype0*
shape
:
4
in7Placeholder*
dtype0*
shape
:

Add_2Addin6in7*
T0
#
AddV2_2AddV2in6in7*
T0

Sub_2Subin6in7*
T0

Mul_2Mulin6in7*
T0
'
	Maximum_2Maximumin6in7*
T0
'
	Minimum_2Minimumin6in7*
T0
;
SquaredDifference_2SquaredDifferencein6in7*
T0
C
Equal_2Equalin6in7*
T0*
incompatible_shape_error(
I

NotEqual_2NotEqualin6in7*
T0*
incompatible_shape_error(
'
	Greater_2Greaterin6in7*
T0
1
GreaterEqual_2GreaterEqualin6in7*
T0
!
Less_2Lessin6in7*
T0
+
LessEqual_2	LessEqualin6in7*
T0
'
	RealDiv_2RealDivin6in7*
T0
4
in8Placeholder*
dtype0*
shape
:

Pow_2Powin8in7*
T0
4
in9Placeholder*
dtype0*
shape
:
5
in10Placeholder*
dtype0*
shape
:
(
FloorDivFloorDivin9in10*
T0
(
FloorModFloorModin9in10*
T0
.
TruncateModTruncateModin9in10*
T0
"
Atan2Atan2in10in9*
T0
5
in11Placeholder*
dtype0*
shape
:
5
in12Placeholder*
dtype0*
shape
:
!
Add_3Addin11in12*
T0
%
AddV2_3AddV2in11in12*
T0
!
Sub_3Subin11in12*
T0
!
Mul_3Mulin11in12*
T0
)
	Maximum_3Maximumin11in12*
T0
)
	Minimum_3Minimumin11in12*
T0
E
Equal_3Equalin11in12*
T0*
incompatible_shape_error(
K

NotEqual_3NotEqualin11in12*
T0*
incompatible_shape_error(
)
	Greater_3Greaterin11in12*
T0
3
GreaterEqual_3GreaterEqualin11in12*
T0
#
Less_3Lessin11in12*
T0
-
LessEqual_3	LessEqualin11in12*
T0
+

FloorDiv_1FloorDivin11in12*
T0
+

FloorMod_1FloorModin11in12*
T0

DivDivin11in12*
T0
-

BitwiseAnd
BitwiseAndin11in12*
T0
+
	BitwiseOr	BitwiseOrin11in12*
T0
-

BitwiseXor
BitwiseXorin11in12*
T0
/
TruncateDivTruncateDivin11in12*
T0
5
in13Placeholder*
dtype0*
shape
:
+
	LeftShift	LeftShiftin11in13*
T0
-

RightShift
RightShiftin11in13*
T0
5
in14Placeholder*
dtype0*
shape
:
5
in15Placeholder*
dtype0*
shape
:
!
Add_4Addin14in15*
T0
%
AddV2_4AddV2in14in15*
T0
!
Sub_4Subin14in15*
T0
!
Mul_4Mulin14in15*
T0
)
	Maximum_4Maximumin14in15*
T0
)
	Minimum_4Minimumin14in15*
T0
E
Equal_4Equalin14in15*
T0*
incompatible_shape_error(
K

NotEqual_4NotEqualin14in15*
T0*
incompatible_shape_error(
)
	Greater_4Greaterin14in15*
T0
3
GreaterEqual_4GreaterEqualin14in15*
T0
#
Less_4Lessin14in15*
T0
-
LessEqual_4	LessEqualin14in15*
T0
+

FloorDiv_2FloorDivin14in15*
T0
+

FloorMod_2FloorModin14in15*
T0
!
Div_1Divin14in15*
T0
/
BitwiseAnd_1
BitwiseAndin14in15*
T0
-
BitwiseOr_1	BitwiseOrin14in15*
T0
/
BitwiseXor_1
BitwiseXorin14in15*
T0
1
TruncateDiv_1TruncateDivin14in15*
T0
5
in16Placeholder*
dtype0*
shape
:
!
Pow_3Powin14in16*
T0
5
in17Placeholder*
dtype0*
shape
:
-
LeftShift_1	LeftShiftin14in17*
T0
/
RightShift_1
RightShiftin14in17*
T0
5
in18Placeholder*
dtype0*
shape
:
5
in19Placeholder*
dtype0*
shape
:
!
Add_5Addin18in19*
T0
%
AddV2_5AddV2in18in19*
T0
!
Sub_5Subin18in19*
T0
!
Mul_5Mulin18in19*
T0
)
	Maximum_5Maximumin18in19*
T0
)
	Minimum_5Minimumin18in19*
T0
=
SquaredDifference_3SquaredDifferencein18in19*
T0
E
Equal_5Equalin18in19*
T0*
incompatible_shape_error(
K

NotEqual_5NotEqualin18in19*
T0*
incompatible_shape_error(
)
	Greater_5Greaterin18in19*
T0
3
GreaterEqual_5GreaterEqualin18in19*
T0
#
Less_5Lessin18in19*
T0
-
LessEqual_5	LessEqualin18in19*
T0
+

FloorDiv_3FloorDivin18in19*
T0
+

FloorMod_3FloorModin18in19*
T0
!
Div_2Divin18in19*
T0
/
BitwiseAnd_2
BitwiseAndin18in19*
T0
-
BitwiseOr_2	BitwiseOrin18in19*
T0
/
BitwiseXor_2
BitwiseXorin18in19*
T0
1
TruncateDiv_2TruncateDivin18in19*
T0
1
TruncateMod_1TruncateModin18in19*
T0

ModModin18in19*
T0
5
in20Placeholder*
dtype0*
shape
:
!
Pow_4Powin18in20*
T0
5
in21Placeholder*
dtype0*
shape
:
-
LeftShift_2	LeftShiftin18in21*
T0
/
RightShift_2
RightShiftin18in21*
T0
5
in22Placeholder*
dtype0	*
shape
:
5
in23Placeholder*
dtype0	*
shape
:
!
Add_6Addin22in23*
T0	
%
AddV2_6AddV2in22in23*
T0	
!
Sub_6Subin22in23*
T0	
!
Mul_6Mulin22in23*
T0	
)
	Maximum_6Maximumin22in23*
T0	
)
	Minimum_6Minimumin22in23*
T0	
=
SquaredDifference_4SquaredDifferencein22in23*
T0	
E
Equal_6Equalin22in23*
T0	*
incompatible_shape_error(
K

NotEqual_6NotEqualin22in23*
T0	*
incompatible_shape_error(
)
	Greater_6Greaterin22in23*
T0	
3
GreaterEqual_6GreaterEqualin22in23*
T0	
#
Less_6Lessin22in23*
T0	
-
LessEqual_6	LessEqualin22in23*
T0	
+

FloorDiv_4FloorDivin22in23*
T0	
+

FloorMod_4FloorModin22in23*
T0	
!
Div_3Divin22in23*
T0	
/
BitwiseAnd_3
BitwiseAndin22in23*
T0	
-
BitwiseOr_3	BitwiseOrin22in23*
T0	
/
BitwiseXor_3
BitwiseXorin22in23*
T0	
1
TruncateDiv_3TruncateDivin22in23*
T0	
1
TruncateMod_2TruncateModin22in23*
T0	
!
Mod_1Modin22in23*
T0	
5
in24Placeholder*
dtype0	*
shape
:
!
Pow_5Powin22in24*
T0	
5
in25Placeholder*
dtype0	*
shape
:
-
LeftShift_3	LeftShiftin22in25*
T0	
/
RightShift_3
RightShiftin22in25*
T0	
5
in26Placeholder*
dtype0*
shape
:
5
in27Placeholder*
dtype0*
shape
:
!
Add_7Addin26in27*
T0
!
Sub_7Subin26in27*
T0
!
Mul_7Mulin26in27*
T0
)
	Maximum_7Maximumin26in27*
T0
)
	Minimum_7Minimumin26in27*
T0
+

FloorDiv_5FloorDivin26in27*
T0
1
TruncateDiv_4TruncateDivin26in27*
T0
#
Less_7Lessin26in27*
T0
3
GreaterEqual_7GreaterEqualin26in27*
T0
E
Equal_7Equalin26in27*
T0*
incompatible_shape_error(
/
BitwiseXor_4
BitwiseXorin26in27*
T0
-
BitwiseOr_4	BitwiseOrin26in27*
T0
-
LeftShift_4	LeftShiftin26in27*
T0
/
RightShift_4
RightShiftin26in27*
T0
5
in28Placeholder*
dtype0*
shape
:
5
in29Placeholder*
dtype0*
shape
:
!
Sub_8Subin28in29*
T0
!
Mul_8Mulin28in29*
T0
)
	Maximum_8Maximumin28in29*
T0
)
	Minimum_8Minimumin28in29*
T0
+

FloorDiv_6FloorDivin28in29*
T0
1
TruncateDiv_5TruncateDivin28in29*
T0
#
Less_8Lessin28in29*
T0
3
GreaterEqual_8GreaterEqualin28in29*
T0
E
Equal_8Equalin28in29*
T0*
incompatible_shape_error(
/
BitwiseXor_5
BitwiseXorin28in29*
T0
-
BitwiseOr_5	BitwiseOrin28in29*
T0
-
LeftShift_5	LeftShiftin28in29*
T0
/
RightShift_5
RightShiftin28in29*
T0
5
in30Placeholder*
dtype0*
shape
:
5
in31Placeholder*
dtype0*
shape
:
*
AddNAddNin30in31*
N*
T0
5
in32Placeholder*
dtype0
*
shape
:
1
in33Placeholder*
dtype0
*
shape:
$

LogicalAnd
LogicalAndin32in33
"
	LogicalOr	LogicalOrin32in33
E
Equal_9Equalin32in33*
T0
*
incompatible_shape_error(
K

NotEqual_7NotEqualin32in33*
T0
*
incompatible_shape_error("ª