// Kernels that `clang_runs` compiles with clang for AMD, without AMD's headers or device library.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ int thread() { return __builtin_amdgcn_workitem_id_x(); }
static __device__ int block() { return __builtin_amdgcn_workgroup_id_x(); }
static __device__ void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
  const int i = block() * 128 + thread();
  if (i < n) out[i] = x[i] + y[i];
}

extern "C" __global__ void divide(const float* x, const float* y, float* out, int n) {
  const int i = block() * 128 + thread();
  if (i < n) out[i] = x[i] / y[i];
}

extern "C" __global__ void divide_doubles(const double* x, const double* y, double* out, int n) {
  const int i = block() * 128 + thread();
  if (i < n) out[i] = x[i] / y[i];
}

extern "C" __global__ void divide_integers(const long long* x, const long long* y, long long* out, int n) {
  const int i = block() * 128 + thread();
  if (i < n) out[i] = x[i] / y[i] + x[i] % y[i] * 3 + (long long)((u64)x[i] / (u64)(u32)y[i]);
}

// A pointer that is to LDS, to scratch or to memory, as the lane's number says.
extern "C" __global__ void generic_pointers(const int* x, int* out) {
  __shared__ int shared[128];
  int own[4] = {1, 2, 3, 4};
  const int t = thread();
  shared[t] = x[t] * 3;
  barrier();
  int* p = t % 3 == 0 ? &shared[127 - t] : t % 3 == 1 ? &own[t % 4] : out + 128 + t;
  *p += 7;
  out[t] = *p + own[(t + 1) % 4];
}

static __device__ int twice(int x) { return 2 * x; }
static __device__ int square(int x) { return x * x; }
static __device__ int minus(int x) { return -x; }
typedef int (*Function)(int);
__device__ Function const functions[3] = {twice, square, minus};
__device__ int table[4] = {10, 20, 30, 40};
__device__ int* const pointers[2] = {&table[1], &table[3]};

extern "C" __global__ void function_pointers(const int* x, int* out) {
  const int t = thread();
  out[t] = functions[x[t] % 3](t) + *pointers[x[t] & 1];
}

static __device__ __attribute__((noinline)) int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(int* out) { out[thread()] = ackermann(2, thread() % 4); }

extern "C" __global__ void atomics(u32* counter, u32* out, u64* wide, float* sum) {
  const int i = block() * 128 + thread();
  out[i] = __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  __atomic_fetch_max(wide, (u64)i << 33, __ATOMIC_RELAXED);
  u32 old = __atomic_load_n(counter + 1, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(counter + 1, &old, old * 3 + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  __atomic_fetch_add(sum, 0.5f, __ATOMIC_RELAXED);
}

extern "C" __global__ void local_atomics(const int* x, int* out) {
  __shared__ u32 bins[8];
  const int t = thread();
  if (t < 8) bins[t] = 0;
  barrier();
  const u32 before = __atomic_fetch_add(&bins[x[t] & 7], 1u, __ATOMIC_RELAXED);
  barrier();
  out[t] = bins[x[t] & 7] * 1000 + (before < bins[x[t] & 7]);
}

// Wave 0 waits for the last wave, by a flag in LDS.
extern "C" __global__ void waves_wait(int* out) {
  __shared__ volatile int flag, value;
  const int t = thread();
  if (t == 0) flag = 0;
  barrier();
  if (t == 0) {
    while (flag == 0) __builtin_amdgcn_s_sleep(1);
    out[0] = value;
  }
  if (t == 255) {
    value = 41;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    flag = 1;
  }
}

// Block 0 waits for the last block.
extern "C" __global__ void groups_wait(volatile int* flag, int* out, int groups) {
  if (thread() != 0) return;
  if (block() == 0) {
    while (__atomic_load_n(flag, __ATOMIC_RELAXED) == 0) {}
    out[0] = 17;
  }
  if (block() == groups - 1) __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

extern "C" __global__ void sizes(int* out) {
  const unsigned short* packet = (const unsigned short*)__builtin_amdgcn_dispatch_ptr();
  if (thread() == 0 && block() == 1) {
    out[0] = packet[2];
    out[1] = ((const int*)packet)[3];
    out[2] = __builtin_amdgcn_workgroup_size_x();
    out[3] = __builtin_amdgcn_grid_size_x();
  }
}

extern "C" __global__ void clocks(u64* out) {
  const u64 before = __builtin_readcyclecounter();
  __builtin_amdgcn_s_sleep(2);
  u64 after = before;
  while (after == before) after = __builtin_readcyclecounter();
  out[thread()] = after != before;
}

extern "C" __global__ void scratch(const int* x, int* out) {
  int held[32];
  const int t = thread();
  for (int k = 0; k < 32; ++k) held[(k * 7 + t) & 31] = k * t + x[k];
  int sum = 0;
  for (int k = 0; k < 32; ++k) sum = sum * 3 + held[(x[k] + k) & 31];
  out[t] = sum;
}

extern "C" __global__ void bits(const u32* x, u32* out) {
  const int t = thread();
  const u32 v = x[t];
  const u64 w = (u64)v << 32 | x[(t + 1) & 127];
  u32 r = __builtin_popcount(v) + __builtin_clz(v | 1) * 3 + __builtin_ctz(v | 0x100) * 5 + __builtin_bitreverse32(v);
  r += (u32)__builtin_popcountll(w) + (u32)__builtin_clzll(w | 1) * 7 + (u32)(w >> (v & 63)) + (u32)(w * 0x9e3779b97f4a7c15ull >> 32);
  r ^= __builtin_rotateleft32(v, v & 31);
  out[t] = r;
}

extern "C" __global__ void doubles(const double* x, double* out) {
  const int t = thread();
  const double v = x[t];
  out[t] = __builtin_sqrt(v) + __builtin_floor(v * 3) - __builtin_fma(v, v, 1) + (double)(long long)(v * 1000) + (double)(u32)v;
}

extern "C" __global__ void shuffles(const int* x, int* out) {
  const int t = thread();
  const int lane = t & 31;
  int v = __builtin_amdgcn_ds_bpermute(((t & ~31) + (31 - lane)) * 4, x[t]);
  v += __builtin_amdgcn_update_dpp(0, x[t], 0x111, 0xf, 0xf, true) * 3;
  v += __builtin_amdgcn_readfirstlane(x[t & ~63]) * 5;
  out[t] = v;
}
