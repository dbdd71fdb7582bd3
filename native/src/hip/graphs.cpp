// HIP's graphs: streams that are captured, graphs built node by node, and what they hold run again.
#include <algorithm>
#include <cstring>

#include "hip/work.h"

using namespace mgx;

namespace {

struct Step {
  const Node* node;  // of the graph it was made from: parameters are set by it
  NodeType type;
  std::vector<std::size_t> after;  // steps, in the order of the graph's nodes
  Work work;
};

// A graph that can run: its nodes' work as it was then. Launches take `steps` and `order` along, so
// that new parameters count from the next launch on.
struct Executable {
  std::shared_ptr<const std::vector<Step>> steps;
  std::shared_ptr<const std::vector<std::size_t>> order;
};

struct Kernel3 {  // dim3
  u32 x, y, z;
};
struct KernelParams {  // hipKernelNodeParams
  Kernel3 threads;
  void** extra;
  void* function;
  Kernel3 groups;
  void** arguments;
  u32 lds;
};
struct FillParams {  // hipMemsetParams
  void* to;
  u32 element;
  std::size_t height, pitch;
  u32 value;
  std::size_t width;
};
struct Pitched {
  void* p;
  std::size_t pitch, width, height;
};
struct CopyParams {  // hipMemcpy3DParms
  void* from_array;
  std::size_t from_at[3];
  Pitched from;
  void* to_array;
  std::size_t to_at[3];
  Pitched to;
  std::size_t extent[3];
  int kind;
};
struct DriverCopy {  // HIP_MEMCPY3D
  struct Side {
    std::size_t x, y, z, level;
    int type;  // 1 host, 2 device
    void *host, *device, *array;
    std::size_t pitch, height;
  } from, to;
  std::size_t width, height, depth;
};
struct HostParams {  // hipHostNodeParams
  void (*function)(void*);
  void* data;
};

// A box of bytes: rows, and planes of rows.
struct Box {
  const char* from;
  char* to;
  std::size_t from_pitch, from_plane, to_pitch, to_plane, width, height, depth;
};

Work box_work(const Box& b) {
  return [b] {
    for (std::size_t z = 0; z < b.depth; ++z) {
      for (std::size_t y = 0; y < b.height; ++y) {
        const Status done = copy(b.to + z * b.to_plane + y * b.to_pitch, b.from + z * b.from_plane + y * b.from_pitch, b.width);
        if (done != kSuccess) return done;
      }
    }
    return kSuccess;
  };
}

// What parameters ask for. Errors: a status, where they ask for nothing that can be done.
Status work_of(const KernelParams* p, Work& work) {
  if (p == nullptr || (p->arguments != nullptr && p->extra != nullptr)) {
    return fail(kInvalidValue, "a kernel node takes either arguments or a segment of them");
  }
  if (p->function == nullptr) return fail(kInvalidFunction, "a kernel node has no function");
  const auto* f = static_cast<const Function*>(p->function);
  const Grid groups{p->groups.x, p->groups.y, p->groups.z}, threads{p->threads.x, p->threads.y, p->threads.z};
  const u64 count = u64{threads.x} * threads.y * threads.z;
  if (u64{groups.x} * groups.y * groups.z == 0 || count == 0 || count > 1024) {
    return fail(kInvalidConfiguration, "a kernel node of no workgroups, or not of 1 to 1024 threads");
  }
  if (p->arguments == nullptr && p->extra == nullptr && !f->info->arguments.empty()) {
    return fail(kInvalidValue, "a kernel node without its arguments");
  }
  work = kernel_work(f, groups, threads, p->lds, p->arguments, p->extra);
  return kSuccess;
}

template <class T>
Work fill_work(const FillParams& p) {
  return [p] {
    for (std::size_t y = 0; y < p.height; ++y) {
      const Status done = fill(reinterpret_cast<T*>(static_cast<char*>(p.to) + y * p.pitch), static_cast<T>(p.value), p.width);
      if (done != kSuccess) return done;
    }
    return kSuccess;
  };
}

Status work_of(const FillParams* p, Work& work) {
  if (p == nullptr || p->to == nullptr || p->height == 0 || (p->height > 1 && p->pitch < p->width * p->element)) {
    return fail(kInvalidValue, "a fill of no memory, or of rows that overlap");
  }
  switch (p->element) {
    case 1: work = fill_work<u8>(*p); return kSuccess;
    case 2: work = fill_work<unsigned short>(*p); return kSuccess;
    case 4: work = fill_work<u32>(*p); return kSuccess;
    default: return fail(kInvalidValue, "a fill of elements that have not 1, 2 or 4 bytes");
  }
}

Status work_of(const CopyParams* p, Work& work) {
  if (p == nullptr || p->from.p == nullptr || p->to.p == nullptr) return fail(kInvalidValue, "a copy from or to nowhere");
  if (p->from_array != nullptr || p->to_array != nullptr) return fail(kNotSupported, "arrays are not emulated");
  const std::size_t from_plane = p->from.pitch * p->from.height, to_plane = p->to.pitch * p->to.height;
  work = box_work({static_cast<const char*>(p->from.p) + p->from_at[0] + p->from_at[1] * p->from.pitch + p->from_at[2] * from_plane,
                   static_cast<char*>(p->to.p) + p->to_at[0] + p->to_at[1] * p->to.pitch + p->to_at[2] * to_plane, p->from.pitch,
                   from_plane, p->to.pitch, to_plane, p->extent[0], p->extent[1], p->extent[2]});
  return kSuccess;
}

Status work_of(const DriverCopy* p, Work& work) {
  if (p == nullptr) return fail(kInvalidValue, "a copy from or to nowhere");
  char* at[2];
  for (int n = 0; n < 2; ++n) {
    const DriverCopy::Side& s = n == 0 ? p->from : p->to;
    if (s.type != 1 && s.type != 2) return fail(kNotSupported, "a copy of memory that is neither the host's nor a device's");
    void* base = s.type == 1 ? s.host : s.device;
    if (base == nullptr) return fail(kInvalidValue, "a copy from or to nowhere");
    at[n] = static_cast<char*>(base) + s.x + s.y * s.pitch + s.z * s.pitch * s.height;
  }
  work = box_work({at[0], at[1], p->from.pitch, p->from.pitch * p->from.height, p->to.pitch, p->to.pitch * p->to.height, p->width,
                   p->height, p->depth});
  return kSuccess;
}

Status work_of(const HostParams* p, Work& work) {
  if (p == nullptr || p->function == nullptr) return fail(kInvalidValue, "a host node without a function");
  work = [f = p->function, data = p->data] {
    f(data);
    return kSuccess;
  };
  return kSuccess;
}

Status run(const std::vector<Step>& steps, const std::vector<std::size_t>& order) {
  for (std::size_t n : order) {
    const Status done = steps[n].work ? steps[n].work() : kSuccess;
    if (done != kSuccess) return done;
  }
  return kSuccess;
}

std::vector<Step> steps_of(const Graph& g) {
  std::map<const Node*, std::size_t> place;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) place[g.nodes[n].get()] = n;
  std::vector<Step> steps;
  for (const auto& node : g.nodes) {
    Step s{node.get(), node->type, {}, node->work};
    for (const Node* a : node->after) s.after.push_back(place.at(a));
    steps.push_back(std::move(s));
  }
  return steps;
}

// An order in which each step comes behind those that it waits for; of several that may be next the
// one that was added last, so that a dependency that is missing shows. False: a cycle.
bool order_of(const std::vector<Step>& steps, std::vector<std::size_t>& order) {
  std::vector<std::size_t> waits(steps.size()), ready;
  std::vector<std::vector<std::size_t>> behind(steps.size());
  for (std::size_t n = 0; n < steps.size(); ++n) {
    waits[n] = steps[n].after.size();
    for (std::size_t a : steps[n].after) behind[a].push_back(n);
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    const auto last = std::max_element(ready.begin(), ready.end());
    const std::size_t n = *last;
    ready.erase(last);
    order.push_back(n);
    for (std::size_t b : behind[n]) {
      if (--waits[b] == 0) ready.push_back(b);
    }
  }
  return order.size() == steps.size();
}

// The graphs and executable graphs that are there.
class Graphs {
 public:
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Graph>> graphs;
  std::map<void*, Executable> executables;

  void* keep(std::shared_ptr<Graph> g) {
    void* p = g.get();
    graphs[p] = std::move(g);
    return p;
  }
  Graph* find(void* p) {
    const auto it = graphs.find(p);
    return it == graphs.end() ? nullptr : it->second.get();
  }
  // The graph that has a node; nullptr: none.
  Graph* owner(const void* node) {
    for (auto& [p, g] : graphs) {
      for (const auto& n : g->nodes) {
        if (n.get() == node) return g.get();
      }
    }
    return nullptr;
  }
};

Graphs& all() {
  static Graphs* found = new Graphs;
  return *found;
}

Status missing() { return fail(kInvalidValue, "the graph, or a node of it, is not there"); }

// Errors: no graph, nodes that are not its own, one of them twice.
Status add(Node** made, void* graph, Node* const* after, std::size_t count, NodeType type, Work work) {
  std::lock_guard<std::mutex> lock(all().mutex);
  Graph* g = all().find(graph);
  if (made == nullptr || g == nullptr || (count != 0 && after == nullptr)) return missing();
  std::vector<Node*> found(after, after + count);
  for (std::size_t n = 0; n < count; ++n) {
    if (all().owner(found[n]) != g) return missing();
    if (std::count(found.begin(), found.end(), found[n]) > 1) return fail(kInvalidValue, "a node waits twice for another");
  }
  *made = g->add(type, std::move(found), std::move(work));
  return kSuccess;
}

template <class P>
Status add_of(Node** made, void* graph, Node* const* after, std::size_t count, NodeType type, const P* params) {
  Work work;
  const Status status = work_of(params, work);
  return status == kSuccess ? add(made, graph, after, count, type, std::move(work)) : status;
}

// New parameters of a node of a graph: what was instantiated keeps the old ones.
template <class P>
Status set_of(Node* node, NodeType type, const P* params) {
  Work work;
  const Status status = work_of(params, work);
  if (status != kSuccess) return status;
  std::lock_guard<std::mutex> lock(all().mutex);
  if (all().owner(node) == nullptr || node->type != type) return missing();
  node->work = std::move(work);
  return kSuccess;
}

// New parameters of a node of an executable graph, which is named by the graph's node.
template <class P>
Status set_in(void* executable, const Node* node, NodeType type, const P* params) {
  Work work;
  const Status status = work_of(params, work);
  if (status != kSuccess) return status;
  std::lock_guard<std::mutex> lock(all().mutex);
  const auto it = all().executables.find(executable);
  if (it == all().executables.end()) return missing();
  auto steps = std::make_shared<std::vector<Step>>(*it->second.steps);
  for (Step& s : *steps) {
    if (s.node != node || s.type != type) continue;
    s.work = std::move(work);
    it->second.steps = std::move(steps);
    return kSuccess;
  }
  return missing();
}

Status instantiate(void** executable, void* graph) {
  std::lock_guard<std::mutex> lock(all().mutex);
  const Graph* g = all().find(graph);
  if (executable == nullptr || g == nullptr) return missing();
  auto steps = std::make_shared<std::vector<Step>>(steps_of(*g));
  auto order = std::make_shared<std::vector<std::size_t>>();
  if (!order_of(*steps, *order)) return fail(kInvalidValue, "the graph's nodes wait for each other");
  void* made = steps.get();  // an address that nothing else has while it is there
  while (all().executables.count(made) != 0) made = static_cast<char*>(made) + 1;
  all().executables[made] = {std::move(steps), std::move(order)};
  *executable = made;
  return kSuccess;
}

// hipGraphExecUpdateResult
enum Update { kUpdated = 0, kUpdateError = 1, kTopologyChanged = 2, kTypeChanged = 3 };

Update compare(const std::vector<Step>& old, const std::vector<Step>& given, std::size_t& at) {
  at = 0;
  if (old.size() != given.size()) return kTopologyChanged;
  for (at = 0; at < old.size(); ++at) {
    if (old[at].after != given[at].after) return kTopologyChanged;
    if (old[at].type != given[at].type) return kTypeChanged;
  }
  return kUpdated;
}

// How many, or as many as there is room for: what HIP's functions for lists do.
void give(const std::vector<Node*>& found, Node** nodes, std::size_t* count) {
  if (nodes != nullptr) {
    for (std::size_t n = 0; n < *count; ++n) nodes[n] = n < found.size() ? found[n] : nullptr;
    *count = std::min(*count, found.size());
  } else {
    *count = found.size();
  }
}

}  // namespace

// ---- captures

API int hipStreamBeginCapture(void* stream, int) { CALLED; return handles().begin_capture(stream); }
API int hipStreamEndCapture(void* stream, void** graph) {
  CALLED;
  std::shared_ptr<Graph> found;
  const Status status = handles().end_capture(stream, found);
  std::lock_guard<std::mutex> lock(all().mutex);
  *graph = status == kSuccess ? all().keep(found) : nullptr;
  return status;
}
API int hipStreamIsCapturing(void* stream, int* status) {
  CALLED;
  *status = handles().capture(stream) != nullptr;
  return kSuccess;
}
API int hipStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  CALLED;
  const std::shared_ptr<Graph> graph = handles().capture(stream);
  *status = graph != nullptr;
  if (id != nullptr) *id = reinterpret_cast<unsigned long long>(graph.get());
  return kSuccess;
}
API int hipThreadExchangeStreamCaptureMode(int*) { CALLED; return kSuccess; }

// ---- graphs, node by node

API int hipGraphCreate(void** graph, u32 flags) {
  CALLED;
  if (graph == nullptr || flags != 0) return fail(kInvalidValue, "expected a place for the graph, and no flags");
  std::lock_guard<std::mutex> lock(all().mutex);
  *graph = all().keep(std::make_shared<Graph>());
  return kSuccess;
}
API int hipGraphDestroy(void* graph) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  return all().graphs.erase(graph) != 0 ? kSuccess : missing();
}
API int hipGraphClone(void** clone, void* graph) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  const Graph* g = all().find(graph);
  if (clone == nullptr || g == nullptr) return missing();
  auto made = std::make_shared<Graph>();
  const std::vector<Step> steps = steps_of(*g);
  for (const Step& s : steps) made->add(s.type, {}, s.work);
  for (std::size_t n = 0; n < steps.size(); ++n) {
    for (std::size_t a : steps[n].after) made->nodes[n]->after.push_back(made->nodes[a].get());
  }
  *clone = all().keep(std::move(made));
  return kSuccess;
}
API int hipGraphAddEmptyNode(Node** made, void* graph, Node* const* after, std::size_t count) {
  CALLED;
  return add(made, graph, after, count, kEmptyNode, nullptr);
}
API int hipGraphAddKernelNode(Node** made, void* graph, Node* const* after, std::size_t count, const KernelParams* params) {
  CALLED;
  return add_of(made, graph, after, count, kKernelNode, params);
}
API int hipGraphAddMemsetNode(Node** made, void* graph, Node* const* after, std::size_t count, const FillParams* params) {
  CALLED;
  return add_of(made, graph, after, count, kFillNode, params);
}
API int hipGraphAddMemcpyNode(Node** made, void* graph, Node* const* after, std::size_t count, const CopyParams* params) {
  CALLED;
  return add_of(made, graph, after, count, kCopyNode, params);
}
API int hipGraphAddMemcpyNode1D(Node** made, void* graph, Node* const* after, std::size_t count, void* to, const void* from,
                                std::size_t size, int) {
  CALLED;
  if (to == nullptr || from == nullptr || size == 0) return fail(kInvalidValue, "a copy from or to nowhere, or of nothing");
  return add(made, graph, after, count, kCopyNode, [=] { return copy(to, from, size); });
}
API int hipDrvGraphAddMemcpyNode(Node** made, void* graph, Node* const* after, std::size_t count, const DriverCopy* params, void*) {
  CALLED;
  return add_of(made, graph, after, count, kCopyNode, params);
}
API int hipGraphAddHostNode(Node** made, void* graph, Node* const* after, std::size_t count, const HostParams* params) {
  CALLED;
  return add_of(made, graph, after, count, kHostNode, params);
}
API int hipGraphAddEventRecordNode(Node** made, void* graph, Node* const* after, std::size_t count, void* event) {
  CALLED;
  const Status there = handles().check(event);
  if (there != kSuccess) return there;
  return add(made, graph, after, count, kRecordNode, [event] { return handles().record(event, nullptr); });
}
API int hipGraphAddEventWaitNode(Node** made, void* graph, Node* const* after, std::size_t count, void* event) {
  CALLED;
  const Status there = handles().check(event);
  if (there != kSuccess) return there;
  return add(made, graph, after, count, kWaitNode, nullptr);  // what was recorded is complete
}
API int hipGraphAddChildGraphNode(Node** made, void* graph, Node* const* after, std::size_t count, void* child) {
  CALLED;
  auto steps = std::make_shared<std::vector<Step>>();
  auto order = std::make_shared<std::vector<std::size_t>>();
  {
    std::lock_guard<std::mutex> lock(all().mutex);
    const Graph* g = all().find(child);
    if (g == nullptr || child == graph) return missing();
    *steps = steps_of(*g);
    if (!order_of(*steps, *order)) return fail(kInvalidValue, "the graph's nodes wait for each other");
  }
  return add(made, graph, after, count, kChildNode, [steps, order] { return run(*steps, *order); });
}
API int hipGraphAddDependencies(void* graph, Node* const* from, Node* const* to, std::size_t count) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  Graph* g = all().find(graph);
  if (g == nullptr || (count != 0 && (from == nullptr || to == nullptr))) return missing();
  for (std::size_t n = 0; n < count; ++n) {
    if (all().owner(from[n]) != g || all().owner(to[n]) != g || from[n] == to[n]) return missing();
    std::vector<Node*>& after = to[n]->after;
    if (std::find(after.begin(), after.end(), from[n]) != after.end()) return fail(kInvalidValue, "a node waits twice for another");
    after.push_back(from[n]);
  }
  return kSuccess;
}
API int hipGraphRemoveDependencies(void* graph, Node* const* from, Node* const* to, std::size_t count) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  Graph* g = all().find(graph);
  if (g == nullptr || (count != 0 && (from == nullptr || to == nullptr))) return missing();
  for (std::size_t n = 0; n < count; ++n) {
    if (all().owner(to[n]) != g) return missing();
    std::vector<Node*>& after = to[n]->after;
    const auto it = std::find(after.begin(), after.end(), from[n]);
    if (it == after.end()) return missing();
    after.erase(it);
  }
  return kSuccess;
}
API int hipGraphDestroyNode(Node* node) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  Graph* g = all().owner(node);
  if (g == nullptr) return missing();
  for (auto& n : g->nodes) n->after.erase(std::remove(n->after.begin(), n->after.end(), node), n->after.end());
  g->nodes.erase(std::find_if(g->nodes.begin(), g->nodes.end(), [node](const auto& n) { return n.get() == node; }));
  return kSuccess;
}
API int hipGraphGetNodes(void* graph, Node** nodes, std::size_t* count) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  const Graph* g = all().find(graph);
  if (g == nullptr || count == nullptr) return missing();
  std::vector<Node*> found;
  for (const auto& n : g->nodes) found.push_back(n.get());
  give(found, nodes, count);
  return kSuccess;
}
API int hipGraphGetRootNodes(void* graph, Node** nodes, std::size_t* count) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  const Graph* g = all().find(graph);
  if (g == nullptr || count == nullptr) return missing();
  std::vector<Node*> found;
  for (const auto& n : g->nodes) {
    if (n->after.empty()) found.push_back(n.get());
  }
  give(found, nodes, count);
  return kSuccess;
}
API int hipGraphNodeGetType(Node* node, int* type) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  if (all().owner(node) == nullptr || type == nullptr) return missing();
  *type = node->type;
  return kSuccess;
}
API int hipGraphNodeGetDependencies(Node* node, Node** nodes, std::size_t* count) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  if (all().owner(node) == nullptr || count == nullptr) return missing();
  give(node->after, nodes, count);
  return kSuccess;
}
API int hipGraphKernelNodeSetParams(Node* node, const KernelParams* params) { CALLED; return set_of(node, kKernelNode, params); }
API int hipGraphMemsetNodeSetParams(Node* node, const FillParams* params) { CALLED; return set_of(node, kFillNode, params); }
API int hipGraphMemcpyNodeSetParams(Node* node, const CopyParams* params) { CALLED; return set_of(node, kCopyNode, params); }

// ---- what can be launched

API int hipGraphInstantiate(void** executable, void* graph, void*, char*, std::size_t) { CALLED; return instantiate(executable, graph); }
API int hipGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) { CALLED; return instantiate(executable, graph); }
API int hipGraphExecDestroy(void* executable) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  return all().executables.erase(executable) != 0 ? kSuccess : missing();
}
API int hipGraphLaunch(void* executable, void* stream) {
  CALLED;
  Executable found;
  {
    std::lock_guard<std::mutex> lock(all().mutex);
    const auto it = all().executables.find(executable);
    if (it == all().executables.end()) return missing();
    found = it->second;
  }
  return enqueue(stream, kChildNode, [found] { return run(*found.steps, *found.order); });
}
API int hipGraphUpload(void* executable, void*) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  return all().executables.count(executable) != 0 ? kSuccess : missing();
}
API int hipGraphExecUpdate(void* executable, void* graph, const Node** at, int* result) {
  CALLED;
  std::lock_guard<std::mutex> lock(all().mutex);
  const auto it = all().executables.find(executable);
  const Graph* g = all().find(graph);
  if (it == all().executables.end() || g == nullptr || at == nullptr || result == nullptr) return missing();
  auto given = std::make_shared<std::vector<Step>>(steps_of(*g));
  std::size_t differs;
  *result = compare(*it->second.steps, *given, differs);
  *at = *result == kUpdated || differs >= given->size() ? nullptr : (*given)[differs].node;
  if (*result != kUpdated) return fail(kGraphUpdateFailure, "the graph has other nodes, or other dependencies");
  // the nodes that parameters are set by stay those of the first graph
  for (std::size_t n = 0; n < given->size(); ++n) (*given)[n].node = (*it->second.steps)[n].node;
  it->second.steps = std::move(given);
  return kSuccess;
}
API int hipGraphExecKernelNodeSetParams(void* executable, Node* node, const KernelParams* params) {
  CALLED;
  return set_in(executable, node, kKernelNode, params);
}
API int hipGraphExecMemsetNodeSetParams(void* executable, Node* node, const FillParams* params) {
  CALLED;
  return set_in(executable, node, kFillNode, params);
}
API int hipGraphExecMemcpyNodeSetParams(void* executable, Node* node, const CopyParams* params) {
  CALLED;
  return set_in(executable, node, kCopyNode, params);
}
