// A library between IREE's CUDA driver and CUDA: every call goes on to CUDA, and while a recording is
// on, the launches, copies and fills that a device's streams are given become nodes of a graph, too.
//
// IREE looks for `libcuda.so` and asks it for all functions by cuGetProcAddress. This library has that
// soname: loaded first, it is what IREE is given. CUDA itself is MGX_CUDA, the name of the driver's
// library, under which everybody else has loaded it.
#include <cstring>

#include <dlfcn.h>

#include "recording.h"

namespace {

using Address = unsigned long long;  // CUdeviceptr
constexpr int kNotFound = 500, kDeviceMemory = 2;
constexpr unsigned kNoTiming = 2;

void* real(const char* name) {
  static void* cuda = dlopen(MGX_CUDA, RTLD_NOW | RTLD_LOCAL);
  return cuda != nullptr ? dlsym(cuda, name) : nullptr;
}

// A function of CUDA, by the name that it has in the library.
template <class... A>
int call(const char* name, A... a) {
  const auto f = reinterpret_cast<int (*)(A...)>(real(name));
  return f != nullptr ? f(a...) : kNotFound;
}

std::set<void*>& streams() {  // of devices that recordings are made on
  static auto* found = new std::set<void*>;
  return *found;
}
bool is_device_made = false;
std::map<char*, std::size_t>& pages() {  // host memory that the device sees
  static auto* found = new std::map<char*, std::size_t>;
  return *found;
}

struct KernelParams {  // CUDA_KERNEL_NODE_PARAMS_v1
  void* function;
  unsigned gx, gy, gz, bx, by, bz, shared;
  void **arguments, **extra;
};
struct Side {  // half of CUDA_MEMCPY3D
  std::size_t x, y, z, level;
  int kind;
  const void* host;
  Address device;
  void *array, *reserved;
  std::size_t pitch, height;
};
struct CopyParams {  // CUDA_MEMCPY3D
  Side from, to;
  std::size_t width, height, depth;
};
struct FillParams {  // CUDA_MEMSET_NODE_PARAMS
  Address to;
  std::size_t pitch;
  unsigned value, element;
  std::size_t width, height;
};
constexpr int kHostMemory = 1;

void* context() {
  void* found = nullptr;
  call("cuCtxGetCurrent", &found);
  return found;
}

// Adds a node by a function of CUDA; the first failure is kept.
template <class... A>
void add(void* stream, const char* name, A... a) {
  std::lock_guard<std::mutex> lock(mutex);
  if (now == nullptr || now->status != kSuccess || streams().count(stream) == 0) return;
  void* made = nullptr;
  void** after = now->last != nullptr ? &now->last : nullptr;
  now->status = call(name, &made, now->graph, after, std::size_t{now->last != nullptr}, a...);
  if (now->status != kSuccess) return;
  now->last = made;
  ++now->nodes;
}

void add_fill(void* stream, Address to, unsigned element, unsigned value, std::size_t count) {
  const FillParams params{to, 0, value, element, count, 1};
  add(stream, "cuGraphAddMemsetNode", &params, context());
}

Side side(Address place) {
  Side made{};
  made.kind = kDeviceMemory;
  made.device = place;
  return made;
}

bool is_host_memory(Address place) {
  std::lock_guard<std::mutex> lock(mutex);
  auto* p = reinterpret_cast<char*>(place);
  auto it = pages().upper_bound(p);
  if (it == pages().begin()) return false;
  --it;
  return p < it->first + it->second;
}

int host_memory(void* p, std::size_t size, int status) {
  std::lock_guard<std::mutex> lock(mutex);
  if (now != nullptr) now->on_host = true;
  if (status == kSuccess) pages()[static_cast<char*>(p)] = size;
  return status;
}

void no_host_memory(void* p) {
  std::lock_guard<std::mutex> lock(mutex);
  pages().erase(static_cast<char*>(p));
}

// ---- what stands before functions of CUDA

int StreamCreate(void** stream, unsigned flags) {
  const int status = call("cuStreamCreate", stream, flags);
  std::lock_guard<std::mutex> lock(mutex);
  if (status == kSuccess && is_device_made) streams().insert(*stream);
  return status;
}
int LaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream,
                 void** arguments, void** extra) {
  const KernelParams params{f, gx, gy, gz, bx, by, bz, shared, arguments, extra};
  add(stream, "cuGraphAddKernelNode", &params);
  return call("cuLaunchKernel", f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
}
int MemcpyAsync(Address to, Address from, std::size_t size, void* stream) {
  if (is_host_memory(to) || is_host_memory(from)) with_host();
  const CopyParams params{side(from), side(to), size, 1, 1};
  add(stream, "cuGraphAddMemcpyNode", &params, context());
  return call("cuMemcpyAsync", to, from, size, stream);
}
int MemcpyHtoDAsync(Address to, const void* from, std::size_t size, void* stream) {
  CopyParams params{{}, side(to), size, 1, 1};
  params.from.kind = kHostMemory;
  params.from.host = kept(from, size);
  add(stream, "cuGraphAddMemcpyNode", &params, context());
  return call("cuMemcpyHtoDAsync_v2", to, from, size, stream);
}
int MemsetD8Async(Address to, unsigned char value, std::size_t count, void* stream) {
  add_fill(stream, to, 1, value, count);
  return call("cuMemsetD8Async", to, value, count, stream);
}
int MemsetD16Async(Address to, unsigned short value, std::size_t count, void* stream) {
  add_fill(stream, to, 2, value, count);
  return call("cuMemsetD16Async", to, value, count, stream);
}
int MemsetD32Async(Address to, unsigned value, std::size_t count, void* stream) {
  add_fill(stream, to, 4, value, count);
  return call("cuMemsetD32Async", to, value, count, stream);
}
std::set<void*>& live() {  // what IREE allocated, and has not freed
  static auto* found = new std::set<void*>;
  return *found;
}
int allocated(void** p, int status) {
  std::lock_guard<std::mutex> lock(mutex);
  if (status == kSuccess) live().insert(*p);
  return status;
}

int MemAlloc(void** p, std::size_t size) { return hold(p, size, allocated(p, call("cuMemAlloc_v2", p, size))); }
int MemAllocFromPoolAsync(void** p, std::size_t size, void* pool, void* stream) {
  return hold(p, size, call("cuMemAllocFromPoolAsync", p, size, pool, stream));
}
int MemFree(void* p) {
  no_host_memory(p);
  if (is_held(p)) return kSuccess;
  {
    std::lock_guard<std::mutex> lock(mutex);
    // IREE 3.13 frees what its cache lets go of twice: the second time it may be another's memory
    if (live().erase(p) == 0) return kSuccess;
  }
  return call("cuMemFree_v2", p);
}
int MemFreeAsync(void* p, void* stream) { return is_held(p) ? kSuccess : call("cuMemFreeAsync", p, stream); }
int MemAllocManaged(void** p, std::size_t size, unsigned flags) {
  const int status = allocated(p, call("cuMemAllocManaged", p, size, flags));
  return host_memory(*p, size, status);
}
int MemHostAlloc(void** p, std::size_t size, unsigned flags) {
  const int status = call("cuMemHostAlloc", p, size, flags);
  return host_memory(*p, size, status);
}
int MemHostRegister(void* p, std::size_t size, unsigned flags) {
  return host_memory(p, size, call("cuMemHostRegister_v2", p, size, flags));
}
int MemFreeHost(void* p) {
  no_host_memory(p);
  return call("cuMemFreeHost", p);
}
int MemHostUnregister(void* p) {
  no_host_memory(p);
  return call("cuMemHostUnregister", p);
}

struct Row {
  const char* name;
  void* function;
};
#define ROW(name) \
  { "cu" #name, reinterpret_cast<void*>(&name) }
const Row kRows[] = {
    ROW(StreamCreate),    ROW(LaunchKernel),          ROW(MemcpyAsync), ROW(MemcpyHtoDAsync), ROW(MemsetD8Async),
    ROW(MemsetD16Async),  ROW(MemsetD32Async),        ROW(MemAlloc),    ROW(MemAllocFromPoolAsync),
    ROW(MemFree),         ROW(MemFreeAsync),          ROW(MemAllocManaged), ROW(MemHostAlloc), ROW(MemHostRegister),
    ROW(MemFreeHost),     ROW(MemHostUnregister),
};

}  // namespace

// The function of a name, as CUDA 11.3 has it: one of this library's, or CUDA's own.
API int cuGetProcAddress(const char* name, void** found, int version, std::uint64_t flags) {
  for (const Row& row : kRows) {
    if (std::strcmp(row.name, name) == 0) {
      *found = row.function;
      return kSuccess;
    }
  }
  if (std::strcmp(name, "cuGetProcAddress") == 0) {
    *found = reinterpret_cast<void*>(&cuGetProcAddress);
    return kSuccess;
  }
  return call("cuGetProcAddress", name, found, version, flags);
}

// ---- recordings. One at a time; nobody else may use the device meanwhile.

// The streams that are made from now on belong to a device for recordings, or no longer. How many do.
API int mgxDevice(int is_made) {
  std::lock_guard<std::mutex> lock(mutex);
  is_device_made = is_made != 0;
  return static_cast<int>(streams().size());
}

API int mgxRecordBegin() {
  auto made = std::make_unique<Recording>();
  const int status = call("cuGraphCreate", &made->graph, 0u);
  if (status != kSuccess) return status;
  std::lock_guard<std::mutex> lock(mutex);
  if (now != nullptr) return kInvalidValue;
  now = made.release();
  return kSuccess;
}

// Ends it: the recording, its nodes, the device memory that it allocated, and whether the host took part.
API int mgxRecordEnd(void** recording, std::uint64_t* nodes, std::uint64_t* bytes, int* on_host) {
  Recording* made;
  {
    std::lock_guard<std::mutex> lock(mutex);
    made = now;
    now = nullptr;
  }
  if (made == nullptr) return kInvalidValue;
  *recording = made;
  *nodes = made->nodes;
  *bytes = made->bytes;
  *on_host = made->on_host;
  if (made->status != kSuccess) return made->status;
  return call("cuGraphInstantiateWithFlags", &made->executable, made->graph, 0ull);
}

// Gives back a recording, and the memory that its call freed.
API int mgxRecordDrop(void* recording) {
  auto* gone = static_cast<Recording*>(recording);
  if (gone->done != nullptr) call("cuEventDestroy_v2", gone->done);
  if (gone->executable != nullptr) call("cuGraphExecDestroy", gone->executable);
  if (gone->graph != nullptr) call("cuGraphDestroy", gone->graph);
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto it = memory().begin(); it != memory().end();) {
      it = it->second == gone ? memory().erase(it) : std::next(it);
    }
  }
  for (void* p : gone->freed) MemFree(p);
  delete gone;
  return kSuccess;
}

// Launches a recording behind copies of inputs and ahead of copies of results, between host or device
// memory and the graph's own. place: the device's context. `wait`: it is done on return. One call of a
// recording at a time.
API int mgxReplay(void* recording, void* place, void* stream, const Copy* in, std::size_t n_in, const Copy* out, std::size_t n_out, int wait) {
  using CopyF = int (*)(Address, Address, std::size_t, void*);
  using OnStream = int (*)(void*, void*);
  // looked up once: dlsym takes longer than a launch
  static const auto copy = reinterpret_cast<CopyF>(real("cuMemcpyAsync"));
  static const auto launch = reinterpret_cast<OnStream>(real("cuGraphLaunch"));
  static const auto record = reinterpret_cast<OnStream>(real("cuEventRecord"));
  static const auto current = reinterpret_cast<int (*)(void**)>(real("cuCtxGetCurrent"));
  static const Launcher by{
      [](void* to, const void* from, std::size_t size, void* on) {
        return copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), size, on);
      },
      [](void* executable, void* on) { return launch(executable, on); },
      [](void* on) { return call("cuStreamSynchronize", on); },
      [](void* on, void* event) { return call("cuStreamWaitEvent", on, event, 0u); },
      [](void** event, void* on) {
        const int status = *event == nullptr ? call("cuEventCreate", event, kNoTiming) : kSuccess;
        return status == kSuccess ? record(*event, on) : status;
      },
  };
  void* before = nullptr;
  int status = current(&before);
  if (before == nullptr) status = call("cuCtxSetCurrent", place);
  const bool is_other = before != nullptr && before != place;
  if (is_other) status = call("cuCtxPushCurrent_v2", place);
  if (status == kSuccess) status = replay(by, *static_cast<Recording*>(recording), stream, in, n_in, out, n_out, wait != 0);
  if (is_other) call("cuCtxPopCurrent_v2", &before);
  return status;
}
