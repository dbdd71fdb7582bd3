// The HIP functions that IREE's hip driver loads, over the emulated devices. Everything is complete
// when a call returns: streams and events have nothing to wait for.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "hip/system.h"

#define API extern "C" __attribute__((visibility("default")))

using mgx::Device;
using mgx::Function;
using mgx::Grid;
using mgx::Module;
using mgx::System;
using mgx::u32;
using mgx::u64;

namespace {

// hipError_t
enum Status {
  kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101, kInvalidContext = 201,
  kNoBinaryForGpu = 209, kInvalidHandle = 400, kNotFound = 500, kLaunchFailure = 719, kNotSupported = 801
};

struct Dim3 {
  u32 x, y, z;
};

thread_local std::string last_message;

// hipDeviceAttribute_t; every other attribute is a size or a capability that the emulator does not limit.
constexpr int kWarpSize = 87;
constexpr int kNoLimit = 65536;

// hipDeviceProp_t of HIP 6: its size and the places that are filled
constexpr std::size_t kPropertiesSize = 1472, kTotalMemory = 288, kSharedMemory = 296, kPropertiesWarpSize = 308,
                      kArchName = 1160, kNameSize = 256;

Status fail(Status status, const std::string& message) {
  last_message = message;
  std::fprintf(stderr, "emulator: %s\n", message.c_str());
  return status;
}

using Clock = std::chrono::steady_clock;

// What a stream, event or pool is here: where it was made, and when an event was recorded.
struct Handle {
  Device* device;
  Clock::time_point recorded;
};

class Handles {
 public:
  Status make(void** p) {
    std::lock_guard<std::mutex> lock(mutex_);
    Handle* made = new Handle{&System::get().current(), {}};
    live_.insert(made);
    *p = made;
    return kSuccess;
  }
  Status drop(void* p) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (live_.erase(p) == 0) return fail(kInvalidHandle, "a stream, event or pool that is not there was destroyed");
    delete static_cast<Handle*>(p);
    return kSuccess;
  }
  // nullptr: it is not there. Null, and the first numbers, are the current device's own streams.
  Device* device(void* p) {
    if (reinterpret_cast<u64>(p) <= 2) return &System::get().current();
    std::lock_guard<std::mutex> lock(mutex_);
    return live_.count(p) != 0 ? static_cast<Handle*>(p)->device : nullptr;
  }
  Status record(void* p) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (live_.count(p) == 0) return fail(kInvalidHandle, "the event is not there");
    static_cast<Handle*>(p)->recorded = Clock::now();
    return kSuccess;
  }
  Status elapsed(float* ms, void* from, void* to) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (live_.count(from) == 0 || live_.count(to) == 0) return fail(kInvalidHandle, "the event is not there");
    const auto between = static_cast<Handle*>(to)->recorded - static_cast<Handle*>(from)->recorded;
    *ms = std::chrono::duration<float, std::milli>(between).count();
    return kSuccess;
  }
  Status check(void* p) {
    return device(p) != nullptr ? kSuccess : fail(kInvalidHandle, "the stream, event or pool is not there");
  }

 private:
  std::mutex mutex_;
  std::set<void*> live_;
};

Handles& handles() {
  static Handles* found = new Handles;
  return *found;
}

Status allocate(Device* device, void** p, std::size_t size) {
  if (p == nullptr || device == nullptr) return kInvalidValue;
  *p = device->allocate(size);
  if (*p != nullptr) return kSuccess;
  return fail(kOutOfMemory, "device " + std::to_string(device->number()) + " has no " + std::to_string(size) +
                                " bytes left of its " + std::to_string(System::get().settings().memory));
}

Status release(void* p) {
  if (p == nullptr || System::get().release(p)) return kSuccess;
  return fail(kInvalidValue, "memory was freed that is not allocated");
}

Status no_device() { return fail(kNoDevice, "MGX_EMULATE_DEVICES is 0"); }

Status outside() { return fail(kInvalidValue, "a copy or fill goes beyond its allocation"); }

template <class T>
Status fill(void* to, T value, std::size_t count) {
  if (!System::get().holds(to, count * sizeof(T))) return outside();
  for (auto& d : System::get().devices()) d->memory().mark_written(to, count * sizeof(T));
  T* p = static_cast<T*>(to);
  for (std::size_t n = 0; n < count; ++n) p[n] = value;
  return kSuccess;
}

Status copy(void* to, const void* from, std::size_t n) {
  if (!System::get().holds(to, n) || !System::get().holds(from, n)) return outside();
  for (auto& d : System::get().devices()) d->memory().mark_written(to, n);
  std::memmove(to, from, n);
  return kSuccess;
}

Status allocate_for_host(void** p, std::size_t n) {
  *p = System::get().allocate_for_host(n);
  return *p == nullptr ? fail(kOutOfMemory, "no " + std::to_string(n) + " bytes are left") : kSuccess;
}

u32 warp_size(const Device& d) { return d.arch().compare(0, 4, "gfx1") == 0 ? 32 : 64; }

std::string name_of(const Device& d) { return "emulated " + (d.arch().empty() ? std::string("AMD GPU") : d.arch()); }

// The devices' contexts are the devices.
thread_local std::vector<int> contexts;

}  // namespace

// ---- devices and contexts

API int hipInit(u32) {
  try {
    return System::get().devices().empty() ? no_device() : kSuccess;  // reads the settings
  } catch (const std::exception& e) {
    return fail(kInvalidValue, e.what());
  }
}
API int hipDriverGetVersion(int* v) { *v = 60000000; return kSuccess; }
API int hipRuntimeGetVersion(int* v) { *v = 60000000; return kSuccess; }
API int hipGetDeviceCount(int* n) {
  *n = static_cast<int>(System::get().devices().size());
  return *n == 0 ? no_device() : kSuccess;
}
API int hipDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return System::get().device(ordinal) != nullptr ? kSuccess : kInvalidDevice;
}
API int hipSetDevice(int ordinal) { return System::get().set_current(ordinal) ? kSuccess : kInvalidDevice; }
API int hipGetDevice(int* ordinal) { *ordinal = System::get().current().number(); return kSuccess; }
API int hipDeviceGetName(char* name, int size, int device) {
  const Device* d = System::get().device(device);
  if (d == nullptr) return kInvalidDevice;
  std::snprintf(name, static_cast<std::size_t>(size), "%s", name_of(*d).c_str());
  return kSuccess;
}
API int hipGetDevicePropertiesR0600(void* properties, int device) {
  const Device* d = System::get().device(device);
  if (d == nullptr) return kInvalidDevice;
  const std::size_t memory = System::get().settings().memory, lds = kNoLimit;
  const u32 lanes = warp_size(*d);
  char* p = static_cast<char*>(properties);
  std::memset(p, 0, kPropertiesSize);
  std::snprintf(p, kNameSize, "%s", name_of(*d).c_str());
  std::memcpy(p + kTotalMemory, &memory, sizeof memory);
  std::memcpy(p + kSharedMemory, &lds, sizeof lds);
  std::memcpy(p + kPropertiesWarpSize, &lanes, sizeof lanes);
  std::snprintf(p + kArchName, kNameSize, "%s", d->arch().c_str());
  return kSuccess;
}
API int hipDeviceGetUuid(unsigned char* uuid, int device) {
  for (unsigned char n = 0; n < 16; ++n) uuid[n] = static_cast<unsigned char>(n + 16 * device);
  return kSuccess;
}
API int hipDeviceGetAttribute(int* value, int attribute, int device) {
  const Device* d = System::get().device(device);
  if (d == nullptr) return kInvalidDevice;
  *value = attribute == kWarpSize ? static_cast<int>(warp_size(*d)) : attribute == 0 ? 1 : kNoLimit;
  return kSuccess;
}
API int hipDeviceTotalMem(std::size_t* bytes, int) { *bytes = System::get().settings().memory; return kSuccess; }
API int hipDevicePrimaryCtxRetain(void** context, int device) {
  *context = System::get().device(device);
  return *context != nullptr ? kSuccess : kInvalidDevice;
}
API int hipDevicePrimaryCtxRelease(int) { return kSuccess; }
API int hipCtxSetCurrent(void* context) {
  return context == nullptr ? kSuccess : hipSetDevice(static_cast<Device*>(context)->number());
}
API int hipCtxGetCurrent(void** context) { *context = &System::get().current(); return kSuccess; }
API int hipCtxPushCurrent(void* context) {
  contexts.push_back(System::get().current().number());
  return hipCtxSetCurrent(context);
}
API int hipCtxPopCurrent(void** context) {
  if (contexts.empty()) return kInvalidContext;
  if (context != nullptr) *context = &System::get().current();
  System::get().set_current(contexts.back());
  contexts.pop_back();
  return kSuccess;
}
API int hipDeviceCanAccessPeer(int* can, int, int) { *can = 0; return kSuccess; }
API int hipDeviceEnablePeerAccess(int, u32) { return kNotSupported; }
API int hipDeviceSynchronize() { return kSuccess; }

// ---- memory

API int hipMalloc(void** p, std::size_t n) { return allocate(&System::get().current(), p, n); }
API int hipMallocAsync(void** p, std::size_t n, void* stream) { return allocate(handles().device(stream), p, n); }
API int hipMallocFromPoolAsync(void** p, std::size_t n, void* pool, void*) {
  return allocate(handles().device(pool), p, n);
}
API int hipMallocManaged(void** p, std::size_t n, u32) { return allocate_for_host(p, n); }
API int hipHostMalloc(void** p, std::size_t n, u32) { return allocate_for_host(p, n); }
API int hipFree(void* p) { return release(p); }
API int hipFreeAsync(void* p, void*) { return release(p); }
API int hipHostFree(void* p) { return release(p); }
API int hipHostRegister(void* p, std::size_t n, u32) {
  System::get().share(p, n);
  return kSuccess;
}
API int hipHostUnregister(void* p) {
  System::get().unshare(p);
  return kSuccess;
}
API int hipHostGetDevicePointer(void** device, void* host, u32) { *device = host; return kSuccess; }
API int hipMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  *total = System::get().settings().memory;
  *free_bytes = *total - System::get().current().usage().live;
  return kSuccess;
}
API int hipMemGetAddressRange(void** base, std::size_t* size, const void* p) {
  const mgx::Range found = System::get().current().memory().find(reinterpret_cast<u64>(p));
  if (found.size == 0) return kNotFound;
  if (base != nullptr) *base = reinterpret_cast<void*>(found.base);
  if (size != nullptr) *size = found.size;
  return kSuccess;
}
API int hipMemPoolCreate(void** pool, const void*) { return handles().make(pool); }
API int hipMemPoolDestroy(void* pool) { return handles().drop(pool); }
API int hipMemPoolGetAttribute(void*, int, void* value) {
  *static_cast<u64*>(value) = 0;
  return kSuccess;
}
API int hipMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
API int hipMemPoolTrimTo(void*, std::size_t) { return kSuccess; }
API int hipMemPrefetchAsync(const void*, std::size_t, int, void*) { return kSuccess; }
API int hipMemcpy(void* to, const void* from, std::size_t n, int) {
  return copy(to, from, n);
}
API int hipMemcpyAsync(void* to, const void* from, std::size_t n, int, void*) {
  return copy(to, from, n);
}
API int hipMemcpyHtoDAsync(void* to, void* from, std::size_t n, void*) {
  return copy(to, from, n);
}
API int hipMemset(void* to, int value, std::size_t n) {
  return fill(to, static_cast<unsigned char>(value), n);
}
API int hipMemsetAsync(void* to, int value, std::size_t n, void*) {
  return fill(to, static_cast<unsigned char>(value), n);
}
API int hipMemsetD8Async(void* to, unsigned char value, std::size_t n, void*) { return fill(to, value, n); }
API int hipMemsetD16Async(void* to, unsigned short value, std::size_t n, void*) { return fill(to, value, n); }
API int hipMemsetD32Async(void* to, int value, std::size_t n, void*) { return fill(to, value, n); }

// ---- streams and events

API int hipStreamCreateWithFlags(void** stream, u32) { return handles().make(stream); }
API int hipStreamDestroy(void* stream) { return handles().drop(stream); }
API int hipStreamSynchronize(void* stream) { return handles().check(stream); }
API int hipStreamWaitEvent(void*, void*, u32) { return kSuccess; }
API int hipStreamQuery(void* stream) { return handles().check(stream); }
API int hipLaunchHostFunc(void*, void (*function)(void*), void* data) {
  function(data);
  return kSuccess;
}
API int hipEventCreate(void** event) { return handles().make(event); }
API int hipEventCreateWithFlags(void** event, u32) { return handles().make(event); }
API int hipEventDestroy(void* event) { return handles().drop(event); }
API int hipEventElapsedTime(float* ms, void* from, void* to) { return handles().elapsed(ms, from, to); }
API int hipEventQuery(void* event) { return handles().check(event); }
API int hipEventRecord(void* event, void*) { return handles().record(event); }
API int hipEventSynchronize(void* event) { return handles().check(event); }

// ---- errors

API int hipGetLastError() { return kSuccess; }
API const char* hipGetErrorName(int status) {
  switch (status) {
    case kSuccess: return "hipSuccess";
    case kInvalidValue: return "hipErrorInvalidValue";
    case kOutOfMemory: return "hipErrorOutOfMemory";
    case kNoDevice: return "hipErrorNoDevice";
    case kInvalidDevice: return "hipErrorInvalidDevice";
    case kInvalidContext: return "hipErrorInvalidContext";
    case kNoBinaryForGpu: return "hipErrorNoBinaryForGpu";
    case kInvalidHandle: return "hipErrorInvalidHandle";
    case kNotFound: return "hipErrorNotFound";
    case kLaunchFailure: return "hipErrorLaunchFailure";
    case kNotSupported: return "hipErrorNotSupported";
    default: return "hipErrorUnknown";
  }
}
API const char* hipGetErrorString(int) {
  return last_message.empty() ? "the emulator does not support the call" : last_message.c_str();
}

// ---- modules and launches

API int hipModuleLoadDataEx(Module** module, const void* image, u32, void*, void**) {
  try {
    *module = System::get().load(image);
    return kSuccess;
  } catch (const std::exception& e) {
    return fail(kNoBinaryForGpu, e.what());
  }
}
API int hipModuleLoadData(Module** module, const void* image) { return hipModuleLoadDataEx(module, image, 0, nullptr, nullptr); }
API int hipModuleUnload(Module* module) {
  System::get().unload(module);
  return kSuccess;
}
API int hipModuleGetFunction(const Function** function, Module* module, const char* name) {
  auto it = module->functions.find(name);
  if (it == module->functions.end()) return kNotFound;
  *function = &it->second;
  return kSuccess;
}
API int hipModuleGetGlobal(void**, std::size_t*, Module*, const char*) { return kNotFound; }
API int hipFuncGetAttribute(int* value, int, const void*) { *value = 0; return kSuccess; }
API int hipFuncSetAttribute(const void*, int, int) { return kSuccess; }
API int hipModuleLaunchKernel(const Function* f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 lds, void*,
                              void** arguments, void** extra) {
  // `extra` holds the whole segment: 1 pointer, 2 size, 3 end
  const void* segment = nullptr;
  std::size_t size = 0;
  for (void** e = extra; e != nullptr && *e != reinterpret_cast<void*>(3); e += 2) {
    if (*e == reinterpret_cast<void*>(1)) segment = e[1];
    if (*e == reinterpret_cast<void*>(2)) size = *static_cast<std::size_t*>(e[1]);
  }
  try {
    Device& device = *f->module->device;
    System::get().add(device.launch(*f, Grid{gx, gy, gz}, Grid{bx, by, bz}, lds, arguments, segment, size));
    return kSuccess;
  } catch (const std::exception& e) {
    return fail(kLaunchFailure, e.what());
  }
}
API int hipLaunchKernel(const void*, Dim3, Dim3, void**, std::size_t, void*) { return kNotSupported; }

// Graphs are not there: the driver then records streams.
API int hipGraphCreate() { return kNotSupported; }
API int hipGraphDestroy() { return kNotSupported; }
API int hipGraphInstantiate() { return kNotSupported; }
API int hipGraphLaunch() { return kNotSupported; }
API int hipGraphExecDestroy() { return kNotSupported; }
API int hipGraphAddEmptyNode() { return kNotSupported; }
API int hipGraphAddEventRecordNode() { return kNotSupported; }
API int hipGraphAddKernelNode() { return kNotSupported; }
API int hipGraphAddMemsetNode() { return kNotSupported; }
API int hipGraphAddMemcpyNode() { return kNotSupported; }
