// Hazard 20: two ways into a block whose arguments have 32 and 64 bits.
vm.module @m {
  vm.export @f
  vm.func @f(%c: i32, %x: i64, %y: i64, %z: i32) -> (i64, i64, i32) {
    vm.cond_br %c, ^l, ^r
  ^l:
    %l0 = vm.mul.i64 %x, %x : i64
    vm.br ^m(%y, %x, %z : i64, i64, i32)
  ^r:
    %r0 = vm.add.i32 %z, %z : i32
    vm.br ^m(%x, %y, %r0 : i64, i64, i32)
  ^m(%p: i64, %q: i64, %s: i32):
    %u2 = vm.add.i32 %s, %s : i32
    %u1 = vm.add.i64 %q, %p : i64
    %u0 = vm.add.i64 %p, %p : i64
    vm.return %u0, %u1, %u2 : i64, i64, i32
  }
}
