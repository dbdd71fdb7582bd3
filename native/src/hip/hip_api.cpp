// The HIP functions that IREE's hip driver loads, over the emulated devices. Everything is complete
// when a call returns, and streams and events have nothing to wait for; or with MGX_EMULATE_QUEUES
// (hip/queues.h) runs when it is waited for.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "hip/queues.h"
#include "hip/work.h"

using namespace mgx;

namespace {

// hipDeviceAttribute_t; every other attribute is a size or a capability that the emulator does not limit.
constexpr int kSharedMemoryOfBlock = 74, kWarpSize = 87, kMultiprocessors = 63, kMostThreads = 56, kCooperativeLaunch = 10;
constexpr int kNoLimit = 65536;
// What a workgroup may have of the LDS: CDNA 4 has 160 KB, others 64. A device of no name takes code of each.
int lds_of(const Device& d) { return d.arch().empty() || d.arch() == "gfx950" ? 160 << 10 : 64 << 10; }

// hipDeviceProp_t of HIP 6: its size and the places that are filled
constexpr std::size_t kPropertiesSize = 1472, kTotalMemory = 288, kSharedMemory = 296, kRegisters = 304,
                      kPropertiesWarpSize = 308, kThreadsOfGroup = 320, kGroupDims = 324, kGridDims = 336, kClockRate = 348,
                      kMajor = 360, kMinor = 364, kUnits = 388, kConcurrent = 576, kMemoryClock = 608, kBusWidth = 612,
                      kThreadsOfUnit = 624, kCooperative = 688, kArchName = 1160, kNameSize = 256;

// Compute units as the products have them; of an architecture that is not named, some.
int units_of(const std::string& arch) {
  static const std::pair<const char*, int> known[] = {{"gfx90a", 104}, {"gfx942", 304}, {"gfx950", 256}, {"gfx1030", 80}, {"gfx1100", 96}, {"gfx1102", 32},
                                                      {"gfx1200", 32}, {"gfx1201", 64}};
  for (const auto& [name, units] : known) {
    if (arch == name) return units;
  }
  return 64;
}

// A copy that is done on return: behind what the device's own stream was given.
Status copy_now(void* to, const void* from, std::size_t n) {
  const Status found = queues().finish(nullptr);
  return found != kSuccess ? found : copy(to, from, n);
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
  CALLED;
  try {
    return System::get().devices().empty() ? no_device() : kSuccess;  // reads the settings
  } catch (const std::exception& e) {
    return fail(kInvalidValue, e.what());
  }
}
API int hipDriverGetVersion(int* v) { CALLED; *v = System::get().settings().version; return kSuccess; }
API int hipRuntimeGetVersion(int* v) { CALLED; *v = System::get().settings().version; return kSuccess; }
API int hipGetDeviceCount(int* n) {
  CALLED;
  *n = static_cast<int>(System::get().devices().size());
  return *n == 0 ? no_device() : kSuccess;
}
API int hipDeviceGet(int* device, int ordinal) {
  CALLED;
  *device = ordinal;
  return System::get().device(ordinal) != nullptr ? kSuccess : kInvalidDevice;
}
API int hipSetDevice(int ordinal) { CALLED; return System::get().set_current(ordinal) ? kSuccess : kInvalidDevice; }
API int hipGetDevice(int* ordinal) { CALLED; *ordinal = System::get().current().number(); return kSuccess; }
API int hipDeviceGetName(char* name, int size, int device) {
  CALLED;
  const Device* d = System::get().device(device);
  if (d == nullptr) return kInvalidDevice;
  std::snprintf(name, static_cast<std::size_t>(size), "%s", name_of(*d).c_str());
  return kSuccess;
}
API int hipGetDevicePropertiesR0600(void* properties, int device) {
  CALLED;
  const Device* d = System::get().device(device);
  if (d == nullptr) return kInvalidDevice;
  const std::size_t memory = System::get().settings().memory, lds = static_cast<std::size_t>(lds_of(*d));
  const u32 lanes = warp_size(*d);
  char* p = static_cast<char*>(properties);
  std::memset(p, 0, kPropertiesSize);
  std::snprintf(p, kNameSize, "%s", name_of(*d).c_str());
  std::memcpy(p + kTotalMemory, &memory, sizeof memory);
  std::memcpy(p + kSharedMemory, &lds, sizeof lds);
  std::memcpy(p + kPropertiesWarpSize, &lanes, sizeof lanes);
  const auto number = [p](std::size_t at, int value) { std::memcpy(p + at, &value, sizeof value); };
  number(kRegisters, kNoLimit);
  number(kThreadsOfGroup, 1024);
  for (std::size_t n = 0; n < 3; ++n) number(kGroupDims + 4 * n, 1024);
  for (std::size_t n = 0; n < 3; ++n) number(kGridDims + 4 * n, 0x7fffffff);
  number(kClockRate, 2000000);  // kHz
  number(kMemoryClock, 1000000);
  number(kBusWidth, 4096);
  const std::string digits = d->arch().size() > 5 ? d->arch().substr(3) : "000";
  number(kMajor, std::atoi(digits.substr(0, digits.size() - 2).c_str()));
  number(kMinor, digits[digits.size() - 2] - '0');
  number(kUnits, units_of(d->arch()));
  number(kThreadsOfUnit, 2048);
  number(kConcurrent, 1);
  number(kCooperative, 1);
  std::snprintf(p + kArchName, kNameSize, "%s", d->arch().c_str());
  return kSuccess;
}
API int hipGetDeviceProperties(void* properties, int device) { CALLED; return hipGetDevicePropertiesR0600(properties, device); }
API int hipDeviceGetUuid(unsigned char* uuid, int device) {
  CALLED;
  for (unsigned char n = 0; n < 16; ++n) uuid[n] = static_cast<unsigned char>(n + 16 * device);
  return kSuccess;
}
API int hipDeviceGetAttribute(int* value, int attribute, int device) {
  CALLED;
  const Device* d = System::get().device(device);
  if (d == nullptr) return kInvalidDevice;
  switch (attribute) {
    case kWarpSize: *value = static_cast<int>(warp_size(*d)); break;
    case kMultiprocessors: *value = units_of(d->arch()); break;
    case kMostThreads: *value = 1024; break;
    case kSharedMemoryOfBlock: *value = lds_of(*d); break;
    case kCooperativeLaunch: case 0: *value = 1; break;
    default: *value = kNoLimit;
  }
  return kSuccess;
}
API int hipDeviceTotalMem(std::size_t* bytes, int) { CALLED; *bytes = System::get().settings().memory; return kSuccess; }
API int hipDevicePrimaryCtxRetain(void** context, int device) {
  CALLED;
  *context = System::get().device(device);
  return *context != nullptr ? kSuccess : kInvalidDevice;
}
API int hipDevicePrimaryCtxRelease(int) { CALLED; return kSuccess; }
API int hipCtxSetCurrent(void* context) {
  CALLED;
  return context == nullptr ? kSuccess : hipSetDevice(static_cast<Device*>(context)->number());
}
API int hipCtxGetCurrent(void** context) { CALLED; *context = &System::get().current(); return kSuccess; }
API int hipCtxPushCurrent(void* context) {
  CALLED;
  contexts.push_back(System::get().current().number());
  return hipCtxSetCurrent(context);
}
API int hipCtxPopCurrent(void** context) {
  CALLED;
  if (contexts.empty()) return kInvalidContext;
  if (context != nullptr) *context = &System::get().current();
  System::get().set_current(contexts.back());
  contexts.pop_back();
  return kSuccess;
}
API int hipDeviceCanAccessPeer(int* can, int, int) { CALLED; *can = 0; return kSuccess; }
API int hipDeviceEnablePeerAccess(int, u32) { CALLED; return kNotSupported; }
API int hipDeviceSynchronize() { CALLED; return queues().finish_all(); }

// ---- memory

API int hipMalloc(void** p, std::size_t n) { CALLED; return allocate(&System::get().current(), p, n); }
API int hipMallocAsync(void** p, std::size_t n, void* stream) { CALLED; return allocate(handles().device(stream), p, n); }
API int hipMallocFromPoolAsync(void** p, std::size_t n, void* pool, void*) {
  CALLED;
  return allocate(handles().device(pool), p, n);
}
API int hipMallocManaged(void** p, std::size_t n, u32) { CALLED; return allocate_for_host(p, n); }
API int hipHostMalloc(void** p, std::size_t n, u32) { CALLED; return allocate_for_host(p, n); }
API int hipFree(void* p) {
  CALLED;
  queues().finish_all();  // what uses it may be under way
  return release(p);
}
API int hipFreeAsync(void* p, void* stream) {
  CALLED;
  return queues().on() ? queues().add(stream, [p] { return release(p); }) : release(p);
}
API int hipHostFree(void* p) {
  CALLED;
  queues().finish_all();
  return release(p);
}
API int hipHostRegister(void* p, std::size_t n, u32) {
  CALLED;
  System::get().share(p, n);
  return kSuccess;
}
API int hipHostUnregister(void* p) {
  CALLED;
  queues().finish_all();
  System::get().unshare(p);
  return kSuccess;
}
API int hipHostGetDevicePointer(void** device, void* host, u32) { CALLED; *device = host; return kSuccess; }
API int hipMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  CALLED;
  *total = System::get().settings().memory;
  *free_bytes = *total - System::get().current().usage().live;
  return kSuccess;
}
API int hipMemGetAddressRange(void** base, std::size_t* size, const void* p) {
  CALLED;
  const mgx::Range found = System::get().current().memory().find(reinterpret_cast<u64>(p));
  if (found.size == 0) return kNotFound;
  if (base != nullptr) *base = reinterpret_cast<void*>(found.base);
  if (size != nullptr) *size = found.size;
  return kSuccess;
}
API int hipMemPoolCreate(void** pool, const void*) { CALLED; return handles().make(pool); }
API int hipMemPoolDestroy(void* pool) { CALLED; return handles().drop(pool); }
API int hipMemPoolGetAttribute(void*, int, void* value) {
  CALLED;
  *static_cast<u64*>(value) = 0;
  return kSuccess;
}
API int hipMemPoolSetAttribute(void*, int, void*) { CALLED; return kSuccess; }
API int hipMemPoolTrimTo(void*, std::size_t) { CALLED; return kSuccess; }
API int hipMemPrefetchAsync(const void*, std::size_t, int, void*) { CALLED; return kSuccess; }
API int hipMemcpy(void* to, const void* from, std::size_t n, int) {
  CALLED;
  return copy_now(to, from, n);
}
API int hipMemcpyAsync(void* to, const void* from, std::size_t n, int, void* stream) {
  CALLED;
  return enqueue(stream, kCopyNode, [=] { return copy(to, from, n); });
}
API int hipMemcpyHtoDAsync(void* to, void* from, std::size_t n, void* stream) {
  CALLED;
  return enqueue(stream, kCopyNode, [=] { return copy(to, from, n); });
}
API int hipMemcpyDtoHAsync(void* to, void* from, std::size_t n, void* stream) {
  CALLED;
  return enqueue(stream, kCopyNode, [=] { return copy(to, from, n); });
}
API int hipMemcpyDtoDAsync(void* to, void* from, std::size_t n, void* stream) {
  CALLED;
  return enqueue(stream, kCopyNode, [=] { return copy(to, from, n); });
}
API int hipMemcpyHtoD(void* to, void* from, std::size_t n) { CALLED; return copy_now(to, from, n); }
API int hipMemcpyDtoH(void* to, void* from, std::size_t n) { CALLED; return copy_now(to, from, n); }
API int hipMemcpyDtoD(void* to, void* from, std::size_t n) { CALLED; return copy_now(to, from, n); }
API int hipMemset(void* to, int value, std::size_t n) {
  CALLED;
  return fill(to, static_cast<unsigned char>(value), n);
}
API int hipMemsetAsync(void* to, int value, std::size_t n, void* stream) {
  CALLED;
  return enqueue(stream, kFillNode, [=] { return fill(to, static_cast<unsigned char>(value), n); });
}
API int hipMemsetD8Async(void* to, unsigned char value, std::size_t n, void* stream) {
  CALLED;
  return enqueue(stream, kFillNode, [=] { return fill(to, value, n); });
}
API int hipMemsetD16Async(void* to, unsigned short value, std::size_t n, void* stream) {
  CALLED;
  return enqueue(stream, kFillNode, [=] { return fill(to, value, n); });
}
API int hipMemsetD32Async(void* to, int value, std::size_t n, void* stream) {
  CALLED;
  return enqueue(stream, kFillNode, [=] { return fill(to, value, n); });
}

// ---- what a pointer is

// One attribute of a pointer. Errors: memory that kernels may not touch.
API int hipPointerGetAttribute(void* data, int attribute, void* p) {
  CALLED;
  enum { kContext = 1, kMemoryType = 2, kDevicePointer = 3, kHostPointer = 4, kIsManaged = 8, kOrdinal = 9, kStart = 11, kSize = 12, kMapped = 13 };
  if (data == nullptr) return kInvalidValue;
  Device* owner = System::get().owner(p);
  if (owner == nullptr) return fail(kInvalidValue, "the pointer is to no memory of a device");
  const mgx::Range range = owner->memory().find(reinterpret_cast<u64>(p));
  switch (attribute) {
    case kContext: *static_cast<void**>(data) = owner; return kSuccess;
    case kMemoryType: *static_cast<int*>(data) = 2; return kSuccess;
    case kDevicePointer: *static_cast<void**>(data) = p; return kSuccess;
    case kHostPointer: *static_cast<void**>(data) = p; return kSuccess;
    case kIsManaged: *static_cast<bool*>(data) = false; return kSuccess;
    case kOrdinal: *static_cast<int*>(data) = owner->number(); return kSuccess;
    case kStart: *static_cast<void**>(data) = reinterpret_cast<void*>(range.base); return kSuccess;
    case kSize: *static_cast<std::size_t*>(data) = range.size; return kSuccess;
    case kMapped: *static_cast<bool*>(data) = true; return kSuccess;
    default: return kNotSupported;
  }
}
// All of them; memory that is not known is the host's.
API int hipPointerGetAttributes(void* attributes, const void* p) {
  CALLED;
  struct {
    int type, device;
    const void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
  } found = {0, 0, nullptr, nullptr, 0, 0};
  if (attributes == nullptr) return kInvalidValue;
  Device* owner = System::get().owner(p);
  if (owner != nullptr) found = {2, owner->number(), p, nullptr, 0, 0};
  else found.host_pointer = p;
  std::memcpy(attributes, &found, sizeof found);
  return kSuccess;
}

// ---- streams and events

API int hipStreamCreateWithFlags(void** stream, u32) { CALLED; return handles().make(stream); }
API int hipStreamDestroy(void* stream) {
  CALLED;
  queues().forget_stream(stream);
  return handles().drop(stream);
}
API int hipStreamSynchronize(void* stream) {
  CALLED;
  const Status found = handles().check(stream);
  return found != kSuccess ? found : queues().finish(stream);
}
API int hipStreamWaitEvent(void* stream, void* event, u32) {
  CALLED;
  if (queues().on() && handles().capture(stream) == nullptr) queues().wait(stream, event);
  return handles().wait(stream, event);
}
API int hipStreamCreate(void** stream) { CALLED; return handles().make(stream); }
API int hipStreamCreateWithPriority(void** stream, u32, int priority) {
  CALLED;
  return handles().make(stream, std::max(kGreatestPriority, std::min(kLeastPriority, priority)));
}
API int hipStreamGetPriority(void* stream, int* priority) { CALLED; return handles().priority(stream, priority); }
API int hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  CALLED;
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return kSuccess;
}
API int hipStreamQuery(void* stream) {
  CALLED;
  const Status found = handles().check(stream);
  return found != kSuccess || queues().is_empty(stream) ? found : kNotReady;
}
API int hipLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  CALLED;
  return enqueue(stream, kHostNode, [=] {
    function(data);
    return kSuccess;
  });
}
API int hipEventCreate(void** event) { CALLED; return handles().make(event); }
API int hipEventCreateWithFlags(void** event, u32) { CALLED; return handles().make(event); }
API int hipEventDestroy(void* event) {
  CALLED;
  queues().forget_event(event);
  return handles().drop(event);
}
API int hipEventElapsedTime(float* ms, void* from, void* to) { CALLED; return handles().elapsed(ms, from, to); }
API int hipEventQuery(void* event) {
  CALLED;
  const Status found = handles().check(event);
  return found != kSuccess || queues().reached(event) ? found : kNotReady;
}
API int hipEventRecord(void* event, void* stream) {
  CALLED;
  if (queues().on() && handles().capture(stream) == nullptr) queues().record(event, stream);
  return handles().record(event, stream);
}
API int hipEventSynchronize(void* event) {
  CALLED;
  const Status found = handles().check(event);
  return found != kSuccess ? found : queues().finish_event(event);
}

// ---- errors

API int hipGetLastError() { CALLED; return take_last_status(); }
API const char* hipGetErrorName(int status) {
  CALLED;
  switch (status) {
    case kSuccess: return "hipSuccess";
    case kInvalidValue: return "hipErrorInvalidValue";
    case kOutOfMemory: return "hipErrorOutOfMemory";
    case kNoDevice: return "hipErrorNoDevice";
    case kInvalidDevice: return "hipErrorInvalidDevice";
    case kInvalidContext: return "hipErrorInvalidContext";
    case kNoBinaryForGpu: return "hipErrorNoBinaryForGpu";
    case kInvalidHandle: return "hipErrorInvalidHandle";
    case kNotReady: return "hipErrorNotReady";
    case kNotFound: return "hipErrorNotFound";
    case kLaunchFailure: return "hipErrorLaunchFailure";
    case kIllegalState: return "hipErrorIllegalState";
    case kCooperativeTooLarge: return "hipErrorCooperativeLaunchTooLarge";
    case kInvalidConfiguration: return "hipErrorInvalidConfiguration";
    case kInvalidFunction: return "hipErrorInvalidDeviceFunction";
    case kCaptureUnjoined: return "hipErrorStreamCaptureUnjoined";
    case kGraphUpdateFailure: return "hipErrorGraphExecUpdateFailure";
    case kCaptureUnsupported: return "hipErrorStreamCaptureUnsupported";
    case kNotSupported: return "hipErrorNotSupported";
    default: return "hipErrorUnknown";
  }
}
API const char* hipGetErrorString(int) {
  CALLED;
  return last_message().empty() ? "the emulator does not support the call" : last_message().c_str();
}

// ---- modules and launches

API int hipModuleLoadDataEx(Module** module, const void* image, u32, void*, void**) {
  CALLED;
  try {
    *module = System::get().load(image);
    return kSuccess;
  } catch (const std::exception& e) {
    return fail(kNoBinaryForGpu, e.what());
  }
}
API int hipModuleLoadData(Module** module, const void* image) { CALLED; return hipModuleLoadDataEx(module, image, 0, nullptr, nullptr); }
API int hipModuleUnload(Module* module) {
  CALLED;
  queues().finish_all();
  System::get().unload(module);
  return kSuccess;
}
API int hipModuleGetFunction(const Function** function, Module* module, const char* name) {
  CALLED;
  auto it = module->functions.find(name);
  if (it == module->functions.end()) return kNotFound;
  *function = &it->second;
  return kSuccess;
}
API int hipModuleGetGlobal(void** p, std::size_t* size, Module* module, const char* name) {
  CALLED;
  const CodeObject& object = module->program->object;
  for (const Variable& v : object.variables) {
    if (v.name != name) continue;
    if (p != nullptr) *p = object.image.get() + v.offset;
    if (size != nullptr) *size = v.size;
    return kSuccess;
  }
  return kNotFound;
}
API int hipFuncGetAttribute(int* value, int attribute, const Function* f) {
  CALLED;
  enum { kMostThreadsOfBlock = 0, kSharedSize = 1, kLocalSize = 3, kRegistersUsed = 4 };
  const KernelInfo& k = *f->info;
  switch (attribute) {
    case kMostThreadsOfBlock: *value = k.max_workgroup != 0 ? static_cast<int>(k.max_workgroup) : 1024; break;
    case kSharedSize: *value = static_cast<int>(k.lds); break;
    case kLocalSize: *value = static_cast<int>(k.scratch); break;
    case kRegistersUsed: *value = static_cast<int>(k.vgprs); break;
    default: *value = 0;
  }
  return kSuccess;
}
API int hipFuncSetAttribute(const void*, int, int) { CALLED; return kSuccess; }
API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const Function* f, int threads, std::size_t) {
  CALLED;
  const u64 resident = most_groups(*f->info, Grid{static_cast<u32>(std::max(threads, 1)), 1, 1});
  *blocks = static_cast<int>(std::max<u64>(1, resident / static_cast<u64>(units_of(f->module->device->arch()))));
  return kSuccess;
}

namespace {

Status launch(const Function* f, Grid groups, Grid threads, u32 lds, void* stream, void** arguments, void** extra) {
  return enqueue(stream, kKernelNode, kernel_work(f, groups, threads, lds, arguments, extra));
}

// All workgroups of a cooperative launch are there at once, as they may wait for each other.
Status launch_together(const Function* f, Grid groups, Grid threads, u32 lds, void* stream, void** arguments, void** extra) {
  const u64 count = u64{groups.x} * groups.y * groups.z, most = most_groups(*f->info, threads);
  if (count > most) {
    return fail(kCooperativeTooLarge, "a cooperative launch of " + std::to_string(count) + " workgroups, at most " +
                                          std::to_string(most) + " are there at once");
  }
  return launch(f, groups, threads, lds, stream, arguments, extra);
}

// HIP_LAUNCH_CONFIG
struct LaunchAttribute {
  int id;
  u32 unused;
  unsigned char value[64];
};
struct LaunchConfig {
  Grid groups, threads;
  u32 lds;
  void* stream;
  LaunchAttribute* attributes;
  u32 count;
};

}  // namespace

API int hipModuleLaunchKernel(const Function* f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 lds, void* stream,
                              void** arguments, void** extra) {
  CALLED;
  return launch(f, Grid{gx, gy, gz}, Grid{bx, by, bz}, lds, stream, arguments, extra);
}
API int hipModuleLaunchCooperativeKernel(const Function* f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 lds,
                                         void* stream, void** arguments) {
  CALLED;
  return launch_together(f, Grid{gx, gy, gz}, Grid{bx, by, bz}, lds, stream, arguments, nullptr);
}
API int hipDrvLaunchKernelEx(const LaunchConfig* config, const Function* f, void** arguments, void** extra) {
  CALLED;
  bool together = false;
  for (u32 n = 0; n < config->count; ++n) {
    const LaunchAttribute& a = config->attributes[n];
    int value;
    std::memcpy(&value, a.value, sizeof value);
    if (a.id == 2) together = value != 0;
    else if (a.id == 4 && value != 1) return fail(kNotSupported, "clusters of workgroups are not emulated");
  }
  return (together ? launch_together : launch)(f, config->groups, config->threads, config->lds, config->stream, arguments, extra);
}
API int hipLaunchKernel(const void*, Grid, Grid, void**, std::size_t, void*) { CALLED; return kNotSupported; }

// ---- functions by name

// Errors: this library has no such function.
API int hipGetProcAddress(const char* name, void** function, int, u64, int* found) {
  CALLED;
  static const int here = 0;
  Dl_info info;
  void* library = dladdr(&here, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  *function = library != nullptr ? dlsym(library, name) : nullptr;
  if (library != nullptr) dlclose(library);
  if (found != nullptr) *found = *function == nullptr;
  return *function != nullptr ? kSuccess : kInvalidValue;
}

// ---- of the emulator itself

// How often a function was called; "": all together.
API u64 mgxCalls(const char* name) {
  u64 sum = 0;
  for (const auto& [called, count] : call_counts()) sum += *name == 0 || called == name ? count : 0;
  return sum;
}
