// A libcuda without a GPU: device memory is the host's, streams run at once, calls are counted.
//
// A kernel is not the PTX's: each mixes the bytes behind its pointers into those behind the last one,
// by a rule that depends on its name and its integers. Equal launches on equal memory give equal bytes.
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

#define API extern "C" __attribute__((visibility("default")))

namespace {
using P = void*;
using Address = unsigned long long;
constexpr int kInvalid = 1, kNotFound = 500;
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

struct Function {
  std::string name;
  std::vector<int> sizes;  // of the parameters
};
struct Module {
  std::map<std::string, Function> functions;
};

std::size_t room(char* p) {
  auto it = blocks.upper_bound(p);
  if (it == blocks.begin()) return 0;
  --it;
  return p < it->first + it->second ? it->first + it->second - p : 0;
}

struct Launch {
  Function* f;
  std::vector<Address> values;
  int run() const {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    unsigned seed = 7;
    for (char c : f->name) seed = seed * 31 + static_cast<unsigned char>(c);
    std::vector<char*> at;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (f->sizes[i] == 8) at.push_back(reinterpret_cast<char*>(values[i]));
      else seed = seed * 31 + static_cast<unsigned>(values[i]);
    }
    if (at.empty()) return 0;
    for (char* p : at)
      if (room(p) == 0) return 700;  // an illegal address
    const std::size_t n = std::min<std::size_t>(room(at.back()), 1 << 12);
    for (std::size_t i = 0; i < n; ++i) {
      unsigned sum = seed + static_cast<unsigned>(i);
      for (std::size_t k = 0; k + 1 < at.size(); ++k)
        sum = sum * 33 + static_cast<unsigned char>(at[k][i % std::min<std::size_t>(room(at[k]), 1 << 12)]);
      at.back()[i] = static_cast<char>(sum % 61);  // as a float or an integer no NaN
    }
    return 0;
  }
};
Launch launch_of(P f, void** arguments) {
  Launch made{static_cast<Function*>(f), {}};
  for (std::size_t i = 0; i < made.f->sizes.size(); ++i) {
    Address value = 0;
    std::memcpy(&value, arguments[i], made.f->sizes[i]);
    made.values.push_back(value);
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
  *p = std::calloc(1, n + 64);
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
API int cuGetErrorName(int, const char** s) { return *s = "CUDA_ERROR_STAND_IN", 0; }
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
API int cuEventSynchronize(P) { return NOTE, 0; }
API int cuMemAlloc_v2(P* p, std::size_t n) { return NOTE, allocate(p, n); }
API int cuMemAllocManaged(P* p, std::size_t n, unsigned) { return NOTE, allocate(p, n); }
API int cuMemHostAlloc(P* p, std::size_t n, unsigned) { return NOTE, allocate(p, n); }
API int cuMemHostRegister_v2(P, std::size_t, unsigned) { return NOTE, 0; }
API int cuMemHostUnregister(P) { return NOTE, 0; }
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
  return *total = std::size_t{1} << 34, *free = *total - standInHeld(), 0;
}
API int cuMemcpyAsync(char* to, char* from, std::size_t n, P) { return NOTE, std::memmove(to, from, n), 0; }
API int cuMemcpyHtoDAsync_v2(char* to, const char* from, std::size_t n, P) { return NOTE, std::memmove(to, from, n), 0; }
API int cuMemcpyDtoHAsync_v2(char* to, const char* from, std::size_t n, P) { return NOTE, std::memmove(to, from, n), 0; }
API int cuMemcpyDtoDAsync_v2(char* to, const char* from, std::size_t n, P) { return NOTE, std::memmove(to, from, n), 0; }
API int cuMemcpyDtoD_v2(char* to, const char* from, std::size_t n) { return NOTE, std::memmove(to, from, n), 0; }

int fill(char* to, unsigned value, unsigned element, std::size_t n) {
  return Node{2, {}, to, nullptr, n, value, element}.run();
}
API int cuMemsetD8Async(char* to, unsigned char v, std::size_t n, P) { return NOTE, fill(to, v, 1, n); }
API int cuMemsetD16Async(char* to, unsigned short v, std::size_t n, P) { return NOTE, fill(to, v, 2, n); }
API int cuMemsetD32Async(char* to, unsigned v, std::size_t n, P) { return NOTE, fill(to, v, 4, n); }

API int cuModuleLoadDataEx(P* m, const char* text, unsigned, P, P) {
  NOTE;
  auto* found = new Module;
  for (const char* at = std::strstr(text, ".entry "); at != nullptr; at = std::strstr(at, ".entry ")) {
    at += 7;
    const char *open = std::strchr(at, '('), *close = std::strchr(at, ')');
    Function f{std::string(at, std::strcspn(at, "( \n")), {}};
    for (const char* p = std::strstr(open, ".param ."); p != nullptr && p < close; p = std::strstr(p + 8, ".param ."))
      f.sizes.push_back(std::strncmp(p + 9, "64", 2) == 0 ? 8 : 4);
    found->functions[f.name] = f;
    at = close;
  }
  return *m = found, 0;
}
API int cuModuleUnload(P m) { return delete static_cast<Module*>(m), 0; }
API int cuModuleGetFunction(P* f, P m, const char* name) {
  auto& all = static_cast<Module*>(m)->functions;
  const auto it = all.find(name);
  return it == all.end() ? kNotFound : (*f = &it->second, 0);
}
API int cuModuleGetGlobal_v2(P*, std::size_t*, P, const char*) { return kNotFound; }
API int cuFuncSetAttribute(P, int, int) { return 0; }
API int cuLaunchKernel(P f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, P, void** arguments, void**) {
  return NOTE, launch_of(f, arguments).run();
}
API int cuLaunchHostFunc(P, void (*f)(void*), void* data) { return NOTE, f(data), 0; }

// ---- graphs, in the order in which nodes were added

struct KernelParams {
  P function;
  unsigned grid[3], block[3], shared;
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
  return add(node, g, {0, launch_of(p->function, p->arguments), nullptr, nullptr, 0, 0, 0});
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
