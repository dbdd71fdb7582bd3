// What the HIP functions share: status codes, the last error, streams and events, work that is
// captured instead of run, and how often each function was called.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>

#include "hip/system.h"

#define API extern "C" __attribute__((visibility("default")))

namespace mgx {

// hipError_t
enum Status {
  kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidConfiguration = 9, kInvalidFunction = 98, kNoDevice = 100,
  kInvalidDevice = 101, kInvalidContext = 201, kNoBinaryForGpu = 209, kInvalidHandle = 400, kIllegalState = 401,
  kNotFound = 500, kNotReady = 600, kLaunchFailure = 719, kCooperativeTooLarge = 720, kNotSupported = 801, kCaptureUnsupported = 900,
  kCaptureUnjoined = 904, kGraphUpdateFailure = 910
};

// Keeps the text of an error for hipGetErrorString, and prints it.
Status fail(Status status, const std::string& message);
const std::string& last_message();
// The last status that is no success, once.
Status take_last_status();

using Work = std::function<Status()>;

// hipGraphNodeType
enum NodeType { kKernelNode = 0, kCopyNode = 1, kFillNode = 2, kHostNode = 3, kChildNode = 4, kEmptyNode = 5, kWaitNode = 6, kRecordNode = 7 };

// Work of a graph, and the nodes that it waits for.
struct Node {
  NodeType type;
  std::vector<Node*> after;
  Work work;
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  Node* add(NodeType type, std::vector<Node*> after, Work work);
};

using Clock = std::chrono::steady_clock;

// What a stream, event or pool is here: where it was made, its priority, when an event was recorded,
// what is being captured, and the nodes that the stream's next one waits for.
struct Handle {
  Device* device;
  int priority = 0;
  Clock::time_point recorded;
  std::shared_ptr<Graph> capture;
  std::vector<Node*> last;
};

// Streams of a lower number come first.
constexpr int kLeastPriority = 1, kGreatestPriority = -1;

class Handles {
 public:
  Status make(void** p, int priority = 0);
  Status priority(void* stream, int* found);
  Status drop(void* p);
  // nullptr: it is not there. Null, and the first numbers, are the current device's own streams.
  Device* device(void* p);
  Status check(void* p) { return device(p) != nullptr ? kSuccess : fail(kInvalidHandle, "the stream, event or pool is not there"); }
  // An event on a stream that is captured belongs to the capture; who waits for it joins it.
  Status record(void* event, void* stream);
  Status wait(void* stream, void* event);
  Status elapsed(float* ms, void* from, void* to);

  Status begin_capture(void* stream);
  // Ends the capture of all streams that joined it. Errors: one of them was not joined again.
  Status end_capture(void* stream, std::shared_ptr<Graph>& graph);
  std::shared_ptr<Graph> capture(void* stream);
  // False: the stream is not captured.
  bool keep(void* stream, NodeType type, Work& work);

 private:
  std::mutex mutex_;
  std::set<void*> live_;
};

Handles& handles();

// Runs work that a stream is given, or keeps it where the stream is captured.
Status enqueue(void* stream, NodeType type, Work work);

// How often HIP's functions were called, by name.
void count_call(const char* name);
std::map<std::string, u64> call_counts();
#define CALLED mgx::count_call(__func__)

}  // namespace mgx
