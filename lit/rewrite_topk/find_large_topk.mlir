// RUN: mgx-opt %s --mgx-rewrite-topk --split-input-file | filecheck %s

// CHECK-LABEL: @large
// CHECK: %[[N:.*]] = "migraphx.literal"
// CHECK: %[[P:.*]] = "migraphx.broadcast"(%[[N]]) {{.*}} -> tensor<2x8192xi64>
// CHECK: %[[X:.*]] = "migraphx.reshape"(%arg0) {{.*}} -> tensor<2x64x128xf32>
// CHECK: %[[I:.*]] = "migraphx.reshape"(%[[P]]) {{.*}} -> tensor<2x64x128xi64>
// CHECK: %[[B:.*]]:2 = "migraphx.topk"(%[[X]], %[[I]]) {axis = 2 : i64, k = 5 : i64, largest = true}
// CHECK: %[[V:.*]] = "migraphx.reshape"(%[[B]]#0) {{.*}} -> tensor<2x320xf32>
// CHECK: %[[W:.*]] = "migraphx.reshape"(%[[B]]#1) {{.*}} -> tensor<2x320xi64>
// CHECK: "migraphx.topk"(%[[V]], %[[W]]) {axis = 1 : i64, k = 5 : i64, largest = true}
func.func @large(%x: tensor<2x8192xf32>) -> (tensor<2x5xf32>, tensor<2x5xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 5 : i64, axis = 1 : i64} : (tensor<2x8192xf32>) -> (tensor<2x5xf32>, tensor<2x5xi64>)
  return %0#0, %0#1 : tensor<2x5xf32>, tensor<2x5xi64>
}

// -----

// The smallest, along the first axis, of integers with many ties.
// CHECK-LABEL: @first
// CHECK: "migraphx.topk"{{.*}}axis = 1 : i64{{.*}}largest = false{{.*}} -> (tensor<50x3x2xi32>, tensor<50x3x2xi64>)
// CHECK: "migraphx.topk"{{.*}}axis = 0 : i64{{.*}}largest = false
func.func @first(%x: tensor<10000x2xi32>) -> (tensor<3x2xi32>, tensor<3x2xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 3 : i64, axis = 0 : i64, largest = false} : (tensor<10000x2xi32>) -> (tensor<3x2xi32>, tensor<3x2xi64>)
  return %0#0, %0#1 : tensor<3x2xi32>, tensor<3x2xi64>
}

// -----

// Too few; a prime number of them; so many wanted that most would survive.
// CHECK-LABEL: @misses
// CHECK-NEXT: migraphx.topk
// CHECK-NEXT: migraphx.topk
// CHECK-NEXT: migraphx.topk
// CHECK-NEXT: return
func.func @misses(%x: tensor<8191xf32>, %y: tensor<8209xf32>, %z: tensor<8192xf32>) -> (tensor<5xi64>, tensor<5xi64>, tensor<5000xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 5 : i64, axis = 0 : i64} : (tensor<8191xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  %1:2 = "migraphx.topk"(%y) {k = 5 : i64, axis = 0 : i64} : (tensor<8209xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  %2:2 = "migraphx.topk"(%z) {k = 5000 : i64, axis = 0 : i64} : (tensor<8192xf32>) -> (tensor<5000xf32>, tensor<5000xi64>)
  return %0#1, %1#1, %2#1 : tensor<5xi64>, tensor<5xi64>, tensor<5000xi64>
}
