// HIP's graphs: streams that are captured, and what was captured run again. Nodes are not built one by one.
#include <cstring>

#include "hip/calls.h"

using namespace mgx;

namespace {

// A graph and its executable forms have the same work: nothing is changed after a capture.
struct Captured {
  std::shared_ptr<Graph> graph;
};

class Graphs {
 public:
  Captured* add(std::shared_ptr<Graph> graph) {
    std::lock_guard<std::mutex> lock(mutex_);
    Captured* made = new Captured{std::move(graph)};
    live_.insert(made);
    return made;
  }
  Status drop(void* p) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (live_.erase(static_cast<Captured*>(p)) == 0) return fail(kInvalidValue, "the graph is not there");
    delete static_cast<Captured*>(p);
    return kSuccess;
  }
  std::shared_ptr<Graph> find(void* p) {
    std::lock_guard<std::mutex> lock(mutex_);
    return live_.count(static_cast<Captured*>(p)) != 0 ? static_cast<Captured*>(p)->graph : nullptr;
  }

 private:
  std::mutex mutex_;
  std::set<Captured*> live_;
};

Graphs& graphs() {
  static Graphs* found = new Graphs;
  return *found;
}

Status instantiate(void** executable, void* graph) {
  const std::shared_ptr<Graph> found = graphs().find(graph);
  if (executable == nullptr || found == nullptr) return fail(kInvalidValue, "the graph is not there");
  *executable = graphs().add(found);
  return kSuccess;
}

}  // namespace

API int hipStreamBeginCapture(void* stream, int) { return handles().begin_capture(stream); }
API int hipStreamEndCapture(void* stream, void** graph) {
  std::shared_ptr<Graph> found;
  const Status status = handles().end_capture(stream, found);
  *graph = status == kSuccess ? graphs().add(found) : nullptr;
  return status;
}
API int hipStreamIsCapturing(void* stream, int* status) {
  *status = handles().capture(stream) != nullptr;
  return kSuccess;
}
API int hipStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  const std::shared_ptr<Graph> graph = handles().capture(stream);
  *status = graph != nullptr;
  if (id != nullptr) *id = reinterpret_cast<unsigned long long>(graph.get());
  return kSuccess;
}
API int hipThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
API int hipGraphInstantiate(void** executable, void* graph, void*, char*, std::size_t) { return instantiate(executable, graph); }
API int hipGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) { return instantiate(executable, graph); }
API int hipGraphLaunch(void* executable, void* stream) {
  const std::shared_ptr<Graph> graph = graphs().find(executable);
  if (graph == nullptr) return fail(kInvalidValue, "the graph is not there");
  return enqueue(stream, [graph] {
    for (const Work& work : graph->work) {
      const Status status = work();
      if (status != kSuccess) return status;
    }
    return kSuccess;
  });
}
API int hipGraphUpload(void*, void*) { return kSuccess; }
API int hipGraphDestroy(void* graph) { return graphs().drop(graph); }
API int hipGraphExecDestroy(void* executable) { return graphs().drop(executable); }
// nodes: how many, without their handles
API int hipGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
  const std::shared_ptr<Graph> found = graphs().find(graph);
  if (found == nullptr) return fail(kInvalidValue, "the graph is not there");
  if (nodes != nullptr) return kNotSupported;
  *count = found->work.size();
  return kSuccess;
}

// Graphs that are built node by node are not there: who asks for one then records streams.
API int hipGraphCreate() { return kNotSupported; }
API int hipGraphAddEmptyNode() { return kNotSupported; }
API int hipGraphAddEventRecordNode() { return kNotSupported; }
API int hipGraphAddKernelNode() { return kNotSupported; }
API int hipGraphAddMemsetNode() { return kNotSupported; }
API int hipGraphAddMemcpyNode() { return kNotSupported; }
