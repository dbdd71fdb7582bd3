// A libcuda without a GPU: device memory is the host's, streams run at once, calls are counted.
//
// Kernels are run from their PTX (ptx_run.h). A launch of nothing or a fault loses the device, as CUDA does.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "ptx.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {
using P = void*;
using Address = unsigned long long;
constexpr int kInvalid = 1, kNoMemory = 2, kNotFound = 500;
constexpr std::size_t kMemory = std::size_t{1} << 32, kNaNs = std::size_t{1} << 26;
std::recursive_mutex mutex;
std::map<std::string, std::uint64_t> counts;
std::map<char*, std::size_t> blocks;
thread_local std::vector<P> contexts;
int made = 0;

void note(const char* name) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  ++counts[name];
}
#define NOTE note(__func__)

using Module = ptx::Loaded;
int lost = 0;  // the status of a fault: each later call has it

std::size_t room(char* p) {
  auto it = blocks.upper_bound(p);
  if (it == blocks.begin()) return 0;
  --it;
  return p < it->first + it->second ? it->first + it->second - p : 0;
}

void check(ptx::Address at, std::size_t size) {
  const std::size_t here = room(reinterpret_cast<char*>(at));
  // LLVM reads three bytes of the last four as four: allocations are whole lines of the hardware's
  const std::size_t more = here == 0 ? 0 : (16 - (at + here) % 16) % 16;
  if (here + more < size) throw ptx::Fault(ptx::kIllegalAddress, std::to_string(size) + " bytes where nothing is");
}

struct Launch {
  const ptx::Code* f;
  ptx::Dims grid, block;
  unsigned shared;
  std::vector<char> values;  // of the parameters
  int run() const {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (lost != 0) return lost;
    if (grid.x * grid.y * grid.z == 0) return kInvalid;
    try {
      ptx::launch(*f, grid, block, shared, values.data());
    } catch (const ptx::Fault& e) {
      std::fprintf(stderr, "%s: %s\n", f->kernel->name.c_str(), e.what());
      return lost = e.status;
    }
    return 0;
  }
};
Launch launch_of(P f, ptx::Dims grid, ptx::Dims block, unsigned shared, void** arguments) {
  Launch made{static_cast<ptx::Code*>(f), grid, block, shared, {}};
  const ptx::Kernel& k = *made.f->kernel;
  made.values.resize(k.bytes);
  int at = 0;
  for (std::size_t i = 0; i < k.sizes.size(); ++i) {
    at = (at + k.sizes[i] - 1) / k.sizes[i] * k.sizes[i];
    std::memcpy(&made.values[at], arguments[i], k.sizes[i]);
    at += k.sizes[i];
  }
  return made;
}

struct Node {
  int kind;  // 0 kernel, 1 copy, 2 fill
  Launch launch;
  char *to, *from;
  std::size_t size;
  unsigned value, element;
  int run() const {
    if (kind == 0) return launch.run();
    if (kind == 1) return std::memmove(to, from, size), 0;
    for (std::size_t i = 0; i < size; ++i) std::memcpy(to + i * element, &value, element);
    return 0;
  }
};
using Graph = std::vector<Node>;

int allocate(P* p, std::size_t n) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  std::size_t held = n;
  for (const auto& [_, size] : blocks) held += size;
  if (n > kMemory || held > kMemory) return kNoMemory;
  *p = std::malloc(n + 64);
  std::memset(*p, 0xff, std::min(n, kNaNs));  // floats begin as NaN
  blocks[static_cast<char*>(*p)] = n;
  return 0;
}
int release(P p) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (blocks.erase(static_cast<char*>(p)) == 0) return ++counts["refused frees"], kInvalid;
  std::free(p);
  return 0;
}
}  // namespace

API std::uint64_t standInCalls(const char* name) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (*name != 0) return counts[name];
  std::uint64_t sum = 0;
  for (auto& [_, n] : counts) sum += n;
  return sum;
}
API void standInPrint() {
  for (auto& [name, n] : counts) std::printf("%s %llu\n", name.c_str(), static_cast<unsigned long long>(n));
}
API void standInClear() { counts.clear(); }
API std::size_t standInHeld() {
  std::size_t sum = 0;
  for (auto& [_, n] : blocks) sum += n;
  return sum;
}

API int cuInit(unsigned) { return 0; }
API int cuDriverGetVersion(int* v) { return *v = 13000, 0; }
API int cuGetErrorName(int status, const char** s) {
  return *s = status == kNoMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_STAND_IN", 0;
}
API int cuGetErrorString(int, const char** s) { return *s = "refused by the stand-in", 0; }
API int cuDeviceGetCount(int* n) { return *n = 1, 0; }
API int cuDeviceGet(int* d, int i) { return *d = i, i == 0 ? 0 : 101; }
API int cuDeviceGetName(char* s, int n, int) { return std::snprintf(s, n, "stand-in"), 0; }
API int cuDeviceGetUuid(unsigned char* u, int) { return std::memset(u, 7, 16), 0; }
API int cuDeviceGetAttribute(int* v, int which, int) {
  // CU_DEVICE_ATTRIBUTE_..: threads and dims of blocks and grids, shared memory, warps, capability 8.9
  static const std::map<int, int> known{{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 1 << 30}, {6, 65535}, {7, 65535},
                                        {8, 49152}, {10, 32}, {16, 132}, {75, 8}, {76, 9}, {97, 101376}};
  const auto it = known.find(which);
  return *v = it == known.end() ? 0 : it->second, 0;
}
API int cuDevicePrimaryCtxRetain(P* c, int) { return *c = &contexts, *c = reinterpret_cast<P>(0x40), 0; }
API int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API int cuCtxCreate_v2(P* c, unsigned, int) { return *c = reinterpret_cast<P>(0x40), 0; }
API int cuCtxDestroy_v2(P) { return 0; }
API int cuCtxGetCurrent(P* c) { return NOTE, *c = contexts.empty() ? nullptr : contexts.back(), 0; }
API int cuCtxSetCurrent(P c) {
  NOTE;
  if (!contexts.empty()) contexts.pop_back();
  return contexts.push_back(c), 0;
}
API int cuCtxPushCurrent_v2(P c) { return NOTE, contexts.push_back(c), 0; }
API int cuCtxPopCurrent_v2(P* c) {
  NOTE;
  if (contexts.empty()) return 201;
  return *c = contexts.back(), contexts.pop_back(), 0;
}
API int cuCtxSynchronize() { return NOTE, 0; }
API int cuStreamCreate(P* s, unsigned) { return NOTE, *s = reinterpret_cast<P>(static_cast<long>(0x100 + ++made)), 0; }
API int cuStreamDestroy_v2(P) { return NOTE, 0; }
API int cuStreamSynchronize(P) { return NOTE, 0; }
API int cuStreamWaitEvent(P, P, unsigned) { return NOTE, 0; }
API int cuStreamCreateWithPriority(P* s, unsigned f, int) { return cuStreamCreate(s, f); }
API int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, 0; }
API int cuEventCreate(P* e, unsigned) { return NOTE, *e = reinterpret_cast<P>(static_cast<long>(0x100 + ++made)), 0; }
API int cuEventDestroy_v2(P) { return NOTE, 0; }
API int cuEventElapsedTime(float* ms, P, P) { return *ms = 0, 0; }
API int cuEventQuery(P) { return NOTE, 0; }
API int cuEventRecord(P, P) { return NOTE, 0; }
// Done later: STAND_IN_EVENT_US says after how many microseconds.
API int cuEventSynchronize(P) {
  NOTE;
  if (const char* late = std::getenv("STAND_IN_EVENT_US")) usleep(static_cast<unsigned>(std::atoi(late)));
  return 0;
}
API int cuMemAlloc_v2(P* p, std::size_t n) { return NOTE, allocate(p, n); }
API int cuMemAllocManaged(P* p, std::size_t n, unsigned) { return NOTE, allocate(p, n); }
API int cuMemHostAlloc(P* p, std::size_t n, unsigned) { return NOTE, allocate(p, n); }
API int cuMemHostRegister_v2(char* p, std::size_t n, unsigned) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return NOTE, blocks[p] = n, 0;
}
API int cuMemHostUnregister(char* p) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return NOTE, blocks.erase(p), 0;
}
API int cuMemHostGetDevicePointer_v2(P* p, P from, unsigned) { return NOTE, *p = from, 0; }
API int cuMemFree_v2(P p) { return NOTE, release(p); }
API int cuMemFreeHost(P p) { return NOTE, release(p); }
API int cuMemPrefetchAsync(P, std::size_t, int, P) { return NOTE, 0; }
API int cuMemPoolCreate(P* p, const void*) { return *p = reinterpret_cast<P>(0x50), 0; }
API int cuMemPoolDestroy(P) { return 0; }
API int cuMemPoolSetAccess(P, const void*, std::size_t) { return 0; }
API int cuMemPoolGetAttribute(P, int, void* v) { return std::memset(v, 0, 8), 0; }
API int cuMemPoolSetAttribute(P, int, void*) { return 0; }
API int cuMemPoolTrimTo(P, std::size_t) { return 0; }
API int cuMemAllocFromPoolAsync(P* p, std::size_t n, P, P) { return NOTE, allocate(p, n); }
API int cuMemFreeAsync(P p, P) { return NOTE, release(p); }
API int cuMemGetAddressRange_v2(P* base, std::size_t* n, P at) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  auto it = blocks.upper_bound(static_cast<char*>(at));
  if (room(static_cast<char*>(at)) == 0) return kInvalid;
  --it;
  return *base = it->first, *n = it->second, 0;
}
API int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return *total = kMemory, *free = *total - standInHeld(), 0;
}
// Whether bytes reach past the end of their allocation. Other memory is the host's.
int outside(char* p, std::size_t n) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (room(p) == 0 || room(p) >= n) return 0;
  std::fprintf(stderr, "%zu bytes at %p, which has %zu\n", n, static_cast<void*>(p), room(p));
  return lost = kInvalid;
}
int copy(char* to, const char* from, std::size_t n) { return std::memmove(to, from, n), 0; }
API int cuMemcpyAsync(char* to, char* from, std::size_t n, P) { return NOTE, outside(to, n) | outside(from, n) ? kInvalid : copy(to, from, n); }
API int cuMemcpyHtoDAsync_v2(char* to, const char* from, std::size_t n, P) { return NOTE, outside(to, n) ? kInvalid : copy(to, from, n); }
API int cuMemcpyDtoHAsync_v2(char* to, char* from, std::size_t n, P) { return NOTE, outside(from, n) ? kInvalid : copy(to, from, n); }
API int cuMemcpyDtoDAsync_v2(char* to, char* from, std::size_t n, P s) { return cuMemcpyAsync(to, from, n, s); }
API int cuMemcpyDtoD_v2(char* to, char* from, std::size_t n) { return NOTE, outside(to, n) | outside(from, n) ? kInvalid : copy(to, from, n); }

int fill(char* to, unsigned value, unsigned element, std::size_t n) {
  if (outside(to, n * element)) return kInvalid;
  return Node{2, {}, to, nullptr, n, value, element}.run();
}
API int cuMemsetD8Async(char* to, unsigned char v, std::size_t n, P) { return NOTE, fill(to, v, 1, n); }
API int cuMemsetD16Async(char* to, unsigned short v, std::size_t n, P) { return NOTE, fill(to, v, 2, n); }
API int cuMemsetD32Async(char* to, unsigned v, std::size_t n, P) { return NOTE, fill(to, v, 4, n); }

API int cuModuleLoadDataEx(P* m, const char* text, unsigned, P, P) {
  NOTE;
  std::unique_ptr<Module> found;
  try {
    found = ptx::load(text, check);
  } catch (const ptx::Fault& e) {
    return std::fprintf(stderr, "%s\n", e.what()), e.status;
  }
  std::lock_guard<std::recursive_mutex> lock(mutex);
  for (auto& [name, data] : found->text.data) blocks[data.bytes.get()] = data.size;
  return *m = found.release(), 0;
}
API int cuModuleUnload(P m) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  for (auto& [name, data] : static_cast<Module*>(m)->text.data) blocks.erase(data.bytes.get());
  return delete static_cast<Module*>(m), 0;
}
API int cuModuleGetFunction(P* f, P m, const char* name) {
  auto& all = static_cast<Module*>(m)->kernels;
  const auto it = all.find(name);
  return it == all.end() ? kNotFound : (*f = it->second.get(), 0);
}
API int cuModuleGetGlobal_v2(P*, std::size_t*, P, const char*) { return kNotFound; }
API int cuFuncSetAttribute(P, int, int) { return 0; }
API int cuLaunchKernel(P f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, P, void** arguments, void**) {
  return NOTE, launch_of(f, {gx, gy, gz}, {bx, by, bz}, shared, arguments).run();
}
API int cuLaunchHostFunc(P, void (*f)(void*), void* data) { return NOTE, f(data), 0; }

// ---- graphs, in the order in which nodes were added

struct KernelParams {
  P function;
  ptx::Dims grid, block;
  unsigned shared;
  void **arguments, **extra;
};
struct Side {
  std::size_t x, y, z, level;
  int kind;
  char *host, *device;
  P array, reserved;
  std::size_t pitch, height;
  char* at() const { return kind == 1 ? host : device; }
};
struct CopyParams {
  Side from, to;
  std::size_t width, height, depth;
};
struct FillParams {
  char* to;
  std::size_t pitch;
  unsigned value, element;
  std::size_t width, height;
};
int add(P* node, P graph, Node made) {
  auto* g = static_cast<Graph*>(graph);
  g->push_back(std::move(made));
  return *node = reinterpret_cast<P>(g->size()), 0;
}
API int cuGraphCreate(P* g, unsigned) { return NOTE, *g = new Graph, 0; }
API int cuGraphDestroy(P g) { return NOTE, delete static_cast<Graph*>(g), 0; }
API int cuGraphExecDestroy(P g) { return NOTE, delete static_cast<Graph*>(g), 0; }
API int cuGraphInstantiateWithFlags(P* e, P g, unsigned long long) { return NOTE, *e = new Graph(*static_cast<Graph*>(g)), 0; }
API int cuGraphLaunch(P e, P) {
  NOTE;
  for (const Node& n : *static_cast<Graph*>(e))
    if (const int status = n.run()) return status;
  return 0;
}
API int cuGraphAddKernelNode(P* node, P g, const P*, std::size_t, const KernelParams* p) {
  return add(node, g, {0, launch_of(p->function, p->grid, p->block, p->shared, p->arguments), nullptr, nullptr, 0, 0, 0});
}
API int cuGraphAddMemcpyNode(P* node, P g, const P*, std::size_t, const CopyParams* p, P) {
  return add(node, g, {1, {}, p->to.at(), p->from.at(), p->width, 0, 0});
}
API int cuGraphAddMemsetNode(P* node, P g, const P*, std::size_t, const FillParams* p, P) {
  return add(node, g, {2, {}, p->to, nullptr, p->width, p->value, p->element});
}
int unsupported() { return 801; }

API int cuGetProcAddress(const char* name, P* found, int, std::uint64_t) {
  static P self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<P>(&cuInit), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  *found = dlsym(self, (std::string(name) + "_v2").c_str());
  if (*found == nullptr) *found = dlsym(self, name);
  if (*found == nullptr) *found = reinterpret_cast<P>(&unsupported);
  return 0;
}
