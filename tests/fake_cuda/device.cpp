// A device of type CUDA whose memory is the CPU's, for torch's build without CUDA.
//
// A build without CUDA leaves the dispatch keys CUDA and SparseCUDA empty. This file fills them: an
// allocator, a device guard, the CUDA hooks, and a fallback that runs the CPU's kernel of an operator
// after it has checked where its tensors are. It also counts what a real GPU would make the host do:
// kernels to launch, and waits for the device.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/RNN.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_coalesce.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <mutex>
#include <set>
#include <unordered_set>

namespace {
using at::Tensor;
using at::TensorList;
using c10::DispatchKey;
constexpr c10::DeviceIndex DEVICES = 2;
thread_local c10::DeviceIndex current = 0;
c10::Device here() { return {c10::DeviceType::CUDA, current}; }
c10::DeviceIndex exchange(c10::DeviceIndex index) { return std::exchange(current, index < 0 ? current : index); }

// ---- Counters -----------------------------------------------------------------------------------
std::atomic<int64_t> allocated{0}, peak{0}, limit{INT64_MAX}, launches{0}, waits{0};
std::atomic<int> sync_mode{0};  // as torch.cuda.set_sync_debug_mode: 1 warns, 2 raises an error
thread_local int inside = 0;    // copies that the fallback itself makes don't count

struct Uncounted {
  Uncounted() { inside++; }
  ~Uncounted() { inside--; }
};

void launch() { launches += !inside; }

void wait(const std::string& what) {
  if (inside) return;
  waits++;
  TORCH_CHECK(sync_mode < 2, "called a synchronizing CUDA operation: ", what);
  if (sync_mode) TORCH_WARN("called a synchronizing CUDA operation: ", what);
}

// ---- Memory -------------------------------------------------------------------------------------
constexpr size_t HEADER = 64;  // the size of a block, before its first byte; keeps it aligned

void release(void* pointer) {
  if (!pointer) return;
  auto* block = static_cast<char*>(pointer) - HEADER;
  allocated -= *reinterpret_cast<int64_t*>(block);
  c10::free_cpu(block);
}

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, here()};
    auto now = allocated += static_cast<int64_t>(size);
    if (now > limit) {
      allocated -= static_cast<int64_t>(size);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", size, " bytes.");
    }
    auto* block = static_cast<char*>(c10::alloc_cpu(size + HEADER));
    *reinterpret_cast<int64_t*>(block) = static_cast<int64_t>(size);
    memset(block + HEADER, 0xcb, size);  // memory that nobody wrote must not look like zeros
    for (auto before = peak.load(); now > before && !peak.compare_exchange_weak(before, now);) {}
    return {block + HEADER, block + HEADER, &release, here()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override { memcpy(to, from, size); }
};
DeviceAllocator device_allocator;
REGISTER_ALLOCATOR(c10::DeviceType::CUDA, &device_allocator)

std::mutex pinned_mutex;
std::set<const char*> pinned;  // first bytes; the sizes are in the headers

void unpin(void* pointer) {
  if (!pointer) return;
  std::lock_guard<std::mutex> lock(pinned_mutex);
  pinned.erase(static_cast<char*>(pointer));
  c10::free_cpu(static_cast<char*>(pointer) - HEADER);
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    auto* block = static_cast<char*>(c10::alloc_cpu(size + HEADER));
    *reinterpret_cast<int64_t*>(block) = static_cast<int64_t>(size);
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned.insert(block + HEADER);
    return {block + HEADER, block + HEADER, &unpin, c10::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, size_t size) const override { memcpy(to, from, size); }
};
PinnedAllocator pinned_allocator;

bool is_pinned(const void* pointer) {
  std::lock_guard<std::mutex> lock(pinned_mutex);
  auto after = pinned.upper_bound(static_cast<const char*>(pointer));
  if (after == pinned.begin()) return false;
  auto* first = *std::prev(after);
  return static_cast<const char*>(pointer) < first + *reinterpret_cast<const int64_t*>(first - HEADER);
}

// ---- The device, as torch asks for it -----------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::DeviceType::CUDA;
  explicit Guard(c10::DeviceType = static_type) {}
  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {c10::DeviceType::CUDA, exchange(device.index())};
  }
  c10::Device getDevice() const override { return here(); }
  void setDevice(c10::Device device) const override { exchange(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { exchange(device.index()); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return DEVICES; }
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override { *event = this_event(); }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { wait("synchronizing a stream"); }
  void synchronizeEvent(void*) const override { waits += !inside; }  // allowed in sync_mode 2, as on a GPU
  void synchronizeDevice(c10::DeviceIndex) const override { wait("synchronizing the device"); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  static void* this_event() { static int event; return &event; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)
}  // namespace

namespace at {
struct CUDAHooks : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return DEVICES; }
  DeviceIndex getCurrentDevice() const override { return current; }
  DeviceIndex current_device() const override { return current; }
  DeviceIndex exchangeDevice(DeviceIndex index) const override { return exchange(index); }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override { return exchangeDevice(index); }
  void setCurrentDevice(DeviceIndex index) const override { exchange(index); }
  bool isPinnedPtr(const void* pointer) const override { return is_pinned(pointer); }
  Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator; }
  Device getDeviceFromPtr(void*) const override { return here(); }
  bool hasCUDA() const override { return true; }
  bool hasCuDNN() const override { return true; }
  bool compiledWithCuDNN() const override { return true; }
  bool supportsBFloat16RNNWithCuDNN() const override { return true; }
  long versionCuDNN() const override { return 92100; }
  long versionRuntimeCuDNN() const override { return 92100; }
  int getNumGPUs() const override { return DEVICES; }
};
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, CUDAHooks)
}  // namespace at

namespace {
bool on_device(const Tensor& t) { return t.defined() && t.is_cuda(); }

// The same memory as a tensor of the CPU.
Tensor on_host(const Tensor& t) {
  if (!on_device(t)) return t;
  auto options = at::TensorOptions().dtype(t.dtype()).device(at::kCPU);
  if (t.numel() == 0) return at::empty_strided(t.sizes(), t.strides(), options);
  return at::from_blob(t.data_ptr(), t.sizes(), t.strides(), options);
}

// ---- Operators that have no CPU kernel to fall back to ------------------------------------------
Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &device_allocator, c10::DispatchKeySet(DispatchKey::CUDA),
      c10::dtype_or_default(dtype), format);
}
Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, stride, &device_allocator,
      c10::DispatchKeySet(DispatchKey::CUDA), c10::dtype_or_default(dtype));
}
Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_same(src)) return self;
  auto& host = on_device(self) ? src : self;
  if (on_device(host)) launch();
  else if (!non_blocking) wait("a copy between the host and the device");
  else if (!is_pinned(host.data_ptr())) wait("a copy between the device and memory that isn't pinned");
  auto to = on_host(self);
  at::native::copy_(to, on_host(src), false);
  return self;
}
Tensor copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  auto to = dst;
  return copy_(to, self, non_blocking);
}
Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  c10::DeviceGuard guard(on_device(dst) ? dst.device() : here());
  at::native::resize_(dst, self.sizes(), std::nullopt);
  return copy_from(self, dst, false);
}
at::Scalar local_scalar_dense(const Tensor& self) {
  wait("reading a number from the device");
  return at::native::_local_scalar_dense_cpu(on_host(self));
}
Tensor view(const Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}
Tensor as_strided(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
    std::optional<c10::SymInt> offset) {
  auto number = offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt;
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), number);
}
Tensor reshape_alias(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}
const Tensor& resize_(const Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(self.device());
  return at::native::resize_(self, C10_AS_INTARRAYREF_SLOW(size), format);
}
Tensor& set_storage(Tensor& self, at::Storage storage, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::set_storage_cpu_(self, storage, offset, size, stride);
}

// ---- Sparse tensors, in coordinates -------------------------------------------------------------
Tensor rebuilt(const Tensor& like, Tensor indices, Tensor values) {
  return at::_sparse_coo_tensor_unsafe(indices, values, like.sizes(), {}, {}, {}, {}, like.is_coalesced());
}
Tensor sparse_on_host(const Tensor& t) { return rebuilt(t, on_host(t._indices()), on_host(t._values())); }
Tensor coalesce(const Tensor& self) {
  wait("coalesce");
  Uncounted uncounted;
  auto result = at::_coalesce(sparse_on_host(self));
  return rebuilt(result, result._indices().to(self.device()), result._values().to(self.device()));
}
Tensor to_dense(const Tensor& self, std::optional<at::ScalarType> dtype, std::optional<bool>) {
  launch();
  Uncounted uncounted;
  return sparse_on_host(self).to_dense(dtype).to(self.device());
}
Tensor sparse_clone(const Tensor& self, std::optional<at::MemoryFormat>) {
  return rebuilt(self, self._indices().clone(), self._values().clone());
}
// The rows of a dense table that a sparse gradient has.
Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  return rebuilt(mask, mask._indices(), self.index_select(0, mask._indices()[0]));
}
// A sum with a dense or a sparse tensor, as add_dense_sparse_cuda and add_sparse_cuda.
Tensor sparse_add(const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  launch();
  Uncounted uncounted;
  auto host = [](const Tensor& t) { return t.is_sparse() ? sparse_on_host(t) : on_host(t); };
  auto result = host(self).add(host(other), alpha);
  if (!result.is_sparse()) return result.to(self.device());
  return rebuilt(result, result._indices().to(self.device()), result._values().to(self.device()));
}
Tensor& sparse_add_(Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  auto total = sparse_add(self, other, alpha);
  TORCH_CHECK(!total.is_sparse(), "fake CUDA: add_ to a sparse tensor");
  return self.copy_(total);
}

// ---- The fallback -------------------------------------------------------------------------------
bool is_index(const c10::OperatorHandle& op, const std::string& argument) {
  static const std::unordered_set<std::string> takes{"aten::index", "aten::index_put", "aten::index_put_",
      "aten::_index_put_impl_", "aten::_unsafe_index"};
  return argument == "indices" && takes.count(op.schema().name());
}

// Check that no tensor of the host is mixed with those of the device, as CUDA's kernels do. They take
// numbers (no dimensions) and indices from the host; indices are copied, and the host waits.
void check_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  static const std::unordered_set<std::string> reads_back{"aten::nonzero", "aten::_unique2", "aten::unique_consecutive",
      "aten::unique_dim", "aten::masked_select", "aten::bincount", "aten::repeat_interleave", "aten::equal"};
  const auto& schema = op.schema();
  auto arguments = torch::jit::last(stack, schema.arguments().size());
  bool mask = false;
  std::set<c10::DeviceIndex> devices;
  std::string host, host_index;
  auto look_at = [&](const Tensor& t, const std::string& name) {
    if (!t.defined()) return;
    if (t.is_cuda()) devices.insert(t.get_device());
    mask |= is_index(op, name) && t.scalar_type() == at::kBool;
    if (t.is_cpu() && (t.dim() > 0 || name == "out")) (is_index(op, name) ? host_index : host) = name;
  };
  for (size_t i = 0; i < arguments.size(); i++) {
    const auto& name = schema.arguments()[i].name();
    if (arguments[i].isTensor()) look_at(arguments[i].toTensor(), name);
    else if (arguments[i].isList())
      for (const c10::IValue& each : arguments[i].toListRef())
        if (each.isTensor()) look_at(each.toTensor(), name);
  }
  TORCH_CHECK(host.empty() || devices.empty(), "Expected all tensors to be on the same device, but found at least "
      "two devices, cuda:0 and cpu! (argument ", host, " of ", schema.name(), ")");
  TORCH_CHECK(devices.size() < 2, "Expected all tensors to be on the same device, but found at least two devices, "
      "cuda:0 and cuda:1! (arguments of ", schema.name(), ")");
  if (!host_index.empty()) wait("indices on the host");
  if (mask) wait("a mask as index");
  bool told = schema.name() == "aten::repeat_interleave" && arguments.back().isInt();  // its output_size
  if (reads_back.count(schema.name()) && !told) wait(schema.name());
}

// Round to the 10 bits of mantissa of TF32, to nearest even.
Tensor rounded(const Tensor& t) {
  if (t.scalar_type() != at::kFloat) return t;
  auto result = t.contiguous().clone();
  auto* bits = static_cast<int32_t*>(result.data_ptr());
  for (int64_t i = 0; i < result.numel(); i++) bits[i] = (bits[i] + 0xFFF + ((bits[i] >> 13) & 1)) & ~0x1FFF;
  return result;
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const std::unordered_set<std::string> products{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"};
  check_arguments(op, *stack);
  launch();
  Uncounted uncounted;
  if (products.count(op.schema().name()) && op.schema().overload_name().empty() && at::globalContext().allowTF32CuBLAS())
    for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); i++)
      if ((*stack)[i].isTensor()) (*stack)[i] = rounded((*stack)[i].toTensor());
  at::native::cpu_fallback(op, stack);
}
void no_kernel(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK(false, "fake CUDA: no kernel of ", op.schema().name(), ".", op.schema().overload_name(), " for sparse tensors");
}

// ---- cuDNN's recurrences: torch.gru and the others call aten::_cudnn_rnn, as on a GPU -----------
std::tuple<Tensor, Tensor, Tensor> recurrence(const Tensor& input, const Tensor& hx, const std::optional<Tensor>& cx,
    TensorList weights, bool biases, int mode, int64_t layers, double dropout, bool train, bool bidirectional,
    bool batch_first, const Tensor& sizes) {
  TORCH_CHECK(dropout == 0.0 || !train, "fake CUDA: cuDNN's own dropout isn't there");
  TORCH_CHECK(!sizes.defined() || sizes.is_cpu(), "batch_sizes tensor should be on CPU, but got ", sizes.device());
  std::vector<int64_t> batch_sizes;
  if (sizes.defined()) batch_sizes.assign(sizes.data_ptr<int64_t>(), sizes.data_ptr<int64_t>() + sizes.numel());
  auto result = at::_cudnn_rnn(input, weights, biases ? 4 : 2, std::nullopt, hx, cx, mode, hx.size(2), 0, layers,
      batch_first, dropout, train, bidirectional, batch_sizes, std::nullopt);
  return {std::get<0>(result), std::get<1>(result), std::get<2>(result)};
}
// Modes as in cudnnRNNMode_t: 1 tanh, 2 LSTM, 3 GRU.
template <int MODE>
void padded(Tensor& output, Tensor& hy, const Tensor& input, const Tensor& hx, TensorList weights, bool biases,
    int64_t layers, double dropout, bool train, bool both, bool batch_first) {
  std::tie(output, hy, std::ignore) =
      recurrence(input, hx, {}, weights, biases, MODE, layers, dropout, train, both, batch_first, {});
}
template <int MODE>
void packed(Tensor& output, Tensor& hy, const Tensor& data, const Tensor& sizes, const Tensor& hx, TensorList weights,
    bool biases, int64_t layers, double dropout, bool train, bool both) {
  std::tie(output, hy, std::ignore) =
      recurrence(data, hx, {}, weights, biases, MODE, layers, dropout, train, both, false, sizes);
}
void padded_lstm(Tensor& output, Tensor& hy, Tensor& cy, const Tensor& input, TensorList state, TensorList weights,
    bool biases, int64_t layers, double dropout, bool train, bool both, bool batch_first) {
  std::tie(output, hy, cy) =
      recurrence(input, state[0], state[1], weights, biases, 2, layers, dropout, train, both, batch_first, {});
}
void packed_lstm(Tensor& output, Tensor& hy, Tensor& cy, const Tensor& data, const Tensor& sizes, TensorList state,
    TensorList weights, bool biases, int64_t layers, double dropout, bool train, bool both) {
  std::tie(output, hy, cy) =
      recurrence(data, state[0], state[1], weights, biases, 2, layers, dropout, train, both, false, sizes);
}
bool acceptable(const Tensor& self) { return at::globalContext().userEnabledCuDNN() && self.is_floating_point(); }
}  // namespace

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(_, SparseCUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&no_kernel>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("resize_", resize_);
  m.impl("copy_", copy_);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar_dense);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("set_.source_Storage", [](Tensor& self, at::Storage source) -> Tensor& { return at::native::set_(self, source); });
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("cudnn_is_acceptable", acceptable);
}
// One launch for all tensors of a list: without these, torch's loop over the list would serve.
constexpr const char* FOREACH[] = {"_foreach_norm.Scalar", "_foreach_add_.List"};
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  for (auto* name : FOREACH) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
}
TORCH_LIBRARY_IMPL(aten, SparseCUDA, m) {
  m.impl("empty.memory_format", at::native::empty_sparse);
  m.impl("_sparse_coo_tensor_with_dims_and_tensors", at::native::new_with_dims_and_tensor_sparse_symint);
  m.impl("_sparse_coo_tensor_with_dims", at::native::new_with_dims_sparse);
  m.impl("sparse_dim", at::native::sparse_dim_sparse);
  m.impl("dense_dim", at::native::dense_dim_sparse);
  m.impl("_indices", at::native::_indices_sparse);
  m.impl("_values", at::native::_values_sparse);
  m.impl("indices", at::native::indices_sparse);
  m.impl("values", at::native::values_sparse);
  m.impl("_nnz", at::native::_nnz_sparse);
  m.impl("is_coalesced", at::native::is_coalesced_sparse);
  m.impl("_coalesced_", at::native::_coalesced_sparse_);
  m.impl("_coalesce", coalesce);
  m.impl("_to_dense", to_dense);
  m.impl("clone", sparse_clone);
  m.impl("sparse_mask", sparse_mask);
  m.impl("add.Tensor", sparse_add);
  m.impl("add_.Tensor", sparse_add_);
}

// ---- The interface for Python, through ctypes ---------------------------------------------------
extern "C" {
void fake_cuda_start() {
  using namespace at::native;
  gru_cudnn_stub.set_cuda_dispatch_ptr(&padded<3>);
  rnn_tanh_cudnn_stub.set_cuda_dispatch_ptr(&padded<1>);
  lstm_cudnn_stub.set_cuda_dispatch_ptr(&padded_lstm);
  gru_packed_cudnn_stub.set_cuda_dispatch_ptr(&packed<3>);
  rnn_tanh_packed_cudnn_stub.set_cuda_dispatch_ptr(&packed<1>);
  lstm_packed_cudnn_stub.set_cuda_dispatch_ptr(&packed_lstm);
}
int64_t fake_cuda_allocated() { return allocated; }
int64_t fake_cuda_peak() { return peak; }
void fake_cuda_reset_peak() { peak = allocated.load(); }
void fake_cuda_limit(int64_t bytes) { limit = bytes; }
int64_t fake_cuda_launches() { return launches; }
int64_t fake_cuda_waits() { return waits; }
void fake_cuda_count(int up) { inside += up ? -1 : 1; }
void fake_cuda_sync_mode(int mode) { sync_mode = mode; }
int fake_cuda_device() { return current; }
int fake_cuda_set_device(int index) { return exchange(static_cast<c10::DeviceIndex>(index)); }
}
