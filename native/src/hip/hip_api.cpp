// The HIP functions that IREE's hip driver loads, over the emulated device. Everything is complete
// when a call returns: streams and events have nothing to wait for.
#include <cstdio>
#include <cstdlib>

#include "hip/device.h"

#define API extern "C" __attribute__((visibility("default")))

using mgx::Device;
using mgx::Function;
using mgx::Grid;
using mgx::Module;
using mgx::u32;
using mgx::u64;

namespace {

// hipError_t
enum Status {
  kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoBinaryForGpu = 209, kNotFound = 500, kLaunchFailure = 719,
  kNotSupported = 801
};

struct Dim3 {
  u32 x, y, z;
};

thread_local std::string last_message;

// hipDeviceAttribute_t; every other attribute is a size or a capability that the emulator does not limit.
constexpr int kWarpSize = 87;
constexpr int kNoLimit = 65536;

void* const kContext = reinterpret_cast<void*>(0x1234);

void report(const std::exception& e) {
  last_message = e.what();
  std::fprintf(stderr, "emulator: %s\n", e.what());
}

Status allocate(void** p, std::size_t size) {
  if (p == nullptr) return kInvalidValue;
  *p = Device::get().memory().allocate(size);
  return *p == nullptr ? kOutOfMemory : kSuccess;
}

Status release(void* p) {
  if (p != nullptr) Device::get().memory().release(p);
  return kSuccess;
}

// Handles of things that have no state here.
Status handle(void** p) {
  *p = std::malloc(8);
  return *p == nullptr ? kOutOfMemory : kSuccess;
}
Status drop(void* p) {
  std::free(p);
  return kSuccess;
}

template <class T>
Status fill(void* to, T value, std::size_t count) {
  Device::get().memory().mark_written(to, count * sizeof(T));
  T* p = static_cast<T*>(to);
  for (std::size_t n = 0; n < count; ++n) p[n] = value;
  return kSuccess;
}

Status copy(void* to, const void* from, std::size_t n) {
  Device::get().memory().mark_written(to, n);
  std::memmove(to, from, n);
  return kSuccess;
}

// Memory that the host writes without telling.
Status allocate_for_host(void** p, std::size_t n) {
  const Status status = allocate(p, n);
  if (status == kSuccess) Device::get().memory().mark_written(*p, n);
  return status;
}

bool is_wave32() { return Device::get().settings().arch.compare(0, 4, "gfx1") == 0; }

}  // namespace

// ---- devices and contexts

API int hipInit(u32) {
  try {
    Device::get();  // reads the settings
    return kSuccess;
  } catch (const std::exception& e) {
    report(e);
    return kInvalidValue;
  }
}
API int hipDriverGetVersion(int* v) { *v = 60000000; return kSuccess; }
API int hipRuntimeGetVersion(int* v) { *v = 60000000; return kSuccess; }
API int hipGetDeviceCount(int* n) { *n = 1; return kSuccess; }
API int hipDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kInvalidValue;
}
API int hipSetDevice(u32 ordinal) { return ordinal == 0 ? kSuccess : kInvalidValue; }
API int hipGetDevice(int* ordinal) { *ordinal = 0; return kSuccess; }
API int hipDeviceGetName(char* name, int size, int) {
  const std::string& arch = Device::get().settings().arch;
  std::snprintf(name, static_cast<std::size_t>(size), "emulated %s", arch.empty() ? "AMD GPU" : arch.c_str());
  return kSuccess;
}
API int hipDeviceGetUuid(unsigned char* uuid, int) {
  for (unsigned char n = 0; n < 16; ++n) uuid[n] = n;
  return kSuccess;
}
API int hipDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == kWarpSize ? (is_wave32() ? 32 : 64) : attribute == 0 ? 1 : kNoLimit;
  return kSuccess;
}
API int hipDeviceTotalMem(std::size_t* bytes, int) { *bytes = std::size_t{1} << 36; return kSuccess; }
API int hipDevicePrimaryCtxRetain(void** context, int) { *context = kContext; return kSuccess; }
API int hipDevicePrimaryCtxRelease(int) { return kSuccess; }
API int hipCtxSetCurrent(void*) { return kSuccess; }
API int hipCtxGetCurrent(void** context) { *context = kContext; return kSuccess; }
API int hipCtxPushCurrent(void*) { return kSuccess; }
API int hipCtxPopCurrent(void** context) {
  if (context != nullptr) *context = kContext;
  return kSuccess;
}
API int hipDeviceCanAccessPeer(int* can, int, int) { *can = 0; return kSuccess; }
API int hipDeviceEnablePeerAccess(int, u32) { return kSuccess; }
API int hipDeviceSynchronize() { return kSuccess; }

// ---- memory

API int hipMalloc(void** p, std::size_t n) { return allocate(p, n); }
API int hipMallocAsync(void** p, std::size_t n, void*) { return allocate(p, n); }
API int hipMallocFromPoolAsync(void** p, std::size_t n, void*, void*) { return allocate(p, n); }
API int hipMallocManaged(void** p, std::size_t n, u32) { return allocate_for_host(p, n); }
API int hipHostMalloc(void** p, std::size_t n, u32) { return allocate_for_host(p, n); }
API int hipFree(void* p) { return release(p); }
API int hipFreeAsync(void* p, void*) { return release(p); }
API int hipHostFree(void* p) { return release(p); }
API int hipHostRegister(void* p, std::size_t n, u32) {
  Device::get().memory().add(p, n);
  return kSuccess;
}
API int hipHostUnregister(void* p) {
  Device::get().memory().remove(p);
  return kSuccess;
}
API int hipHostGetDevicePointer(void** device, void* host, u32) { *device = host; return kSuccess; }
API int hipMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = *total = std::size_t{1} << 36;
  return kSuccess;
}
API int hipMemPoolCreate(void** pool, const void*) { return handle(pool); }
API int hipMemPoolDestroy(void* pool) { return drop(pool); }
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

API int hipStreamCreateWithFlags(void** stream, u32) { return handle(stream); }
API int hipStreamDestroy(void* stream) { return drop(stream); }
API int hipStreamSynchronize(void*) { return kSuccess; }
API int hipStreamWaitEvent(void*, void*, u32) { return kSuccess; }
API int hipStreamQuery(void*) { return kSuccess; }
API int hipLaunchHostFunc(void*, void (*function)(void*), void* data) {
  function(data);
  return kSuccess;
}
API int hipEventCreate(void** event) { return handle(event); }
API int hipEventCreateWithFlags(void** event, u32) { return handle(event); }
API int hipEventDestroy(void* event) { return drop(event); }
API int hipEventElapsedTime(float* ms, void*, void*) { *ms = 0; return kSuccess; }
API int hipEventQuery(void*) { return kSuccess; }
API int hipEventRecord(void*, void*) { return kSuccess; }
API int hipEventSynchronize(void*) { return kSuccess; }

// ---- errors

API int hipGetLastError() { return kSuccess; }
API const char* hipGetErrorName(int status) {
  switch (status) {
    case kSuccess: return "hipSuccess";
    case kInvalidValue: return "hipErrorInvalidValue";
    case kOutOfMemory: return "hipErrorOutOfMemory";
    case kNoBinaryForGpu: return "hipErrorNoBinaryForGpu";
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
    *module = Device::get().load(image);
    return kSuccess;
  } catch (const std::exception& e) {
    report(e);
    return kNoBinaryForGpu;
  }
}
API int hipModuleLoadData(Module** module, const void* image) { return hipModuleLoadDataEx(module, image, 0, nullptr, nullptr); }
API int hipModuleUnload(Module* module) {
  Device::get().unload(module);
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
    Device::get().launch(*f, Grid{gx, gy, gz}, Grid{bx, by, bz}, lds, arguments, segment, size);
    return kSuccess;
  } catch (const std::exception& e) {
    report(e);
    return kLaunchFailure;
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
