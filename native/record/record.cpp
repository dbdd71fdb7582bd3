// A library between a HIP driver and HIP: every call goes on to HIP, and while a recording is on, the
// launches, copies and fills that streams are given become nodes of a graph, too. Where markers are
// asked for, each launch is in a range that has the kernel's name.
//
// HIP's other functions are found in the library that this one is linked with. Built with MGX_HIP, the
// file of that library.
#include <cstring>
#include <string>

#include <dlfcn.h>

#include "recording.h"

namespace {

constexpr int kNotFound = 500, kToHost = 2, kAnywhere = 4;
constexpr std::uint32_t kNoTiming = 2;

template <class F>
F real(const char* name, F) {
  static void* hip = dlopen(MGX_HIP, RTLD_NOW | RTLD_LOCAL);
  return hip != nullptr ? reinterpret_cast<F>(dlsym(hip, name)) : nullptr;
}
// HIP's own function of the name and type of the one that stands here
#define REAL(name) real(#name, &name)

// Functions of HIP that this library has no part in.
template <class... A>
int call(const char* name, A... a) {
  const auto f = real(name, static_cast<int (*)(A...)>(nullptr));
  return f != nullptr ? f(a...) : kNotFound;
}

// Functions that begin and end a profiler's range, and the kernels' names.
int (*push)(const char*) = nullptr;
int (*pop)() = nullptr;
std::map<void*, std::string>& names() {
  static auto* found = new std::map<void*, std::string>;
  return *found;
}

// A range round a launch, where there are markers.
class Marked {
 public:
  explicit Marked(void* function) {
    std::string name = "kernel";
    int (*begin)(const char*) = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex);
      begin = push;
      end_ = pop;
      const auto it = names().find(function);
      if (it != names().end()) name = it->second;
    }
    if (begin != nullptr) begin(name.c_str());
  }
  ~Marked() {
    if (end_ != nullptr) end_();
  }

 private:
  int (*end_)() = nullptr;
};

struct Dims {
  std::uint32_t x, y, z;
};
struct KernelParams {  // hipKernelNodeParams
  Dims threads;
  void** extra;
  void* function;
  Dims groups;
  void** arguments;
  std::uint32_t lds;
};
struct FillParams {  // hipMemsetParams
  void* to;
  std::uint32_t element;
  std::size_t height, pitch;
  std::uint32_t value;
  std::size_t width;
};

// Adds a node by a function of HIP; the first failure is kept.
template <class... A>
void add(const char* name, A... a) {
  std::lock_guard<std::mutex> lock(mutex);
  if (now == nullptr || now->status != kSuccess) return;
  void* made = nullptr;
  void** after = now->last != nullptr ? &now->last : nullptr;
  now->status = call(name, &made, now->graph, after, std::size_t{now->last != nullptr}, a...);
  if (now->status != kSuccess) return;
  now->last = made;
  ++now->nodes;
}

void add_copy(void* to, const void* from, std::size_t size, int kind, bool of_host) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (now == nullptr) return;
    if (kind == kToHost) now->on_host = true;
  }
  if (of_host) from = kept(from, size);
  add("hipGraphAddMemcpyNode1D", to, from, size, kind);
}

void add_fill(void* to, std::uint32_t element, std::uint32_t value, std::size_t count) {
  const FillParams params{to, element, 1, 0, value, count};
  add("hipGraphAddMemsetNode", &params);
}

}  // namespace

// ---- what is recorded

API int hipModuleLaunchKernel(void* f, std::uint32_t gx, std::uint32_t gy, std::uint32_t gz, std::uint32_t bx, std::uint32_t by,
                              std::uint32_t bz, std::uint32_t lds, void* stream, void** arguments, void** extra) {
  const KernelParams params{{bx, by, bz}, extra, f, {gx, gy, gz}, arguments, lds};
  add("hipGraphAddKernelNode", &params);
  const Marked range(f);
  return REAL(hipModuleLaunchKernel)(f, gx, gy, gz, bx, by, bz, lds, stream, arguments, extra);
}
API int hipModuleGetFunction(void** function, void* module, const char* name) {
  const int status = REAL(hipModuleGetFunction)(function, module, name);
  std::lock_guard<std::mutex> lock(mutex);
  if (status == kSuccess) names()[*function] = name;
  return status;
}
API int hipMemcpyAsync(void* to, const void* from, std::size_t size, int kind, void* stream) {
  add_copy(to, from, size, kind, kind == 1);
  return REAL(hipMemcpyAsync)(to, from, size, kind, stream);
}
API int hipMemcpyHtoDAsync(void* to, void* from, std::size_t size, void* stream) {
  add_copy(to, from, size, 1, true);
  return REAL(hipMemcpyHtoDAsync)(to, from, size, stream);
}
API int hipMemsetAsync(void* to, int value, std::size_t size, void* stream) {
  add_fill(to, 1, static_cast<unsigned char>(value), size);
  return REAL(hipMemsetAsync)(to, value, size, stream);
}
API int hipMemsetD8Async(void* to, unsigned char value, std::size_t count, void* stream) {
  add_fill(to, 1, value, count);
  return REAL(hipMemsetD8Async)(to, value, count, stream);
}
API int hipMemsetD16Async(void* to, unsigned short value, std::size_t count, void* stream) {
  add_fill(to, 2, value, count);
  return REAL(hipMemsetD16Async)(to, value, count, stream);
}
API int hipMemsetD32Async(void* to, int value, std::size_t count, void* stream) {
  add_fill(to, 4, static_cast<std::uint32_t>(value), count);
  return REAL(hipMemsetD32Async)(to, value, count, stream);
}

// ---- memory

API int hipMalloc(void** p, std::size_t size) { return hold(p, size, REAL(hipMalloc)(p, size)); }
API int hipMallocAsync(void** p, std::size_t size, void* stream) {
  return hold(p, size, REAL(hipMallocAsync)(p, size, stream));
}
API int hipMallocFromPoolAsync(void** p, std::size_t size, void* pool, void* stream) {
  return hold(p, size, REAL(hipMallocFromPoolAsync)(p, size, pool, stream));
}
API int hipMallocManaged(void** p, std::size_t size, std::uint32_t flags) {
  with_host();
  return REAL(hipMallocManaged)(p, size, flags);
}
API int hipHostMalloc(void** p, std::size_t size, std::uint32_t flags) {
  with_host();
  return REAL(hipHostMalloc)(p, size, flags);
}
API int hipFree(void* p) { return is_held(p) ? kSuccess : REAL(hipFree)(p); }
API int hipFreeAsync(void* p, void* stream) { return is_held(p) ? kSuccess : REAL(hipFreeAsync)(p, stream); }

// ---- markers

// Functions as rocTX has them, for all launches from now on; null: none.
API void mgxMarkers(int (*begin)(const char*), int (*end)()) {
  std::lock_guard<std::mutex> lock(mutex);
  push = begin;
  pop = end;
}

// ---- recordings. One at a time; nobody else may use the device meanwhile.

API int mgxRecordBegin() {
  auto made = std::make_unique<Recording>();
  const int status = call("hipGraphCreate", &made->graph, 0u);
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
  return call("hipGraphInstantiate", &made->executable, made->graph, static_cast<void**>(nullptr), static_cast<char*>(nullptr),
              std::size_t{0});
}

// Gives back a recording, and the memory that its call freed.
API int mgxRecordDrop(void* recording) {
  auto* gone = static_cast<Recording*>(recording);
  if (gone->done != nullptr) call("hipEventDestroy", gone->done);
  if (gone->executable != nullptr) call("hipGraphExecDestroy", gone->executable);
  if (gone->graph != nullptr) call("hipGraphDestroy", gone->graph);
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto it = memory().begin(); it != memory().end();) {
      it = it->second == gone ? memory().erase(it) : std::next(it);
    }
  }
  for (void* p : gone->freed) call("hipFree", p);
  delete gone;
  return kSuccess;
}

// ---- launches

// Launches a recording behind copies of inputs and ahead of copies of results, between host or device
// memory and the graph's own. place: the device's number. `wait`: it is done on return. One call of a
// recording at a time.
API int mgxReplay(void* recording, void* place, void* stream, const Copy* in, std::size_t n_in, const Copy* out, std::size_t n_out,
                  int wait) {
  static const Launcher by{
      [](void* to, const void* from, std::size_t size, void* on) { return REAL(hipMemcpyAsync)(to, from, size, kAnywhere, on); },
      [](void* executable, void* on) { return call("hipGraphLaunch", executable, on); },
      [](void* on) { return call("hipStreamSynchronize", on); },
      [](void* on, void* event) { return call("hipStreamWaitEvent", on, event, 0u); },
      [](void** event, void* on) {
        const int status = *event == nullptr ? call("hipEventCreateWithFlags", event, kNoTiming) : kSuccess;
        return status == kSuccess ? call("hipEventRecord", *event, on) : status;
      },
  };
  const int device = static_cast<int>(reinterpret_cast<std::intptr_t>(place));
  int before = device;
  int status = call("hipGetDevice", &before);
  if (status == kSuccess && before != device) status = call("hipSetDevice", device);
  if (status == kSuccess) status = replay(by, *static_cast<Recording*>(recording), stream, in, n_in, out, n_out, wait != 0);
  if (before != device) call("hipSetDevice", before);
  return status;
}
