// src/runtime/launch/parity_rows.cpp - launches of a batched kernel and of its twin
#include "runtime/launch/parity_rows.hpp"

#include <algorithm>
#include <cstring>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/launch/checked_call.hpp"
#include "runtime/launch/kernel_pipeline.hpp"
#include "runtime/launch/output_check.hpp"
#include "runtime/launch/random_operands.hpp"
#include "runtime/launch/tensor_maps.hpp"
#include "runtime/module/loaded_module.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr auto kGuard = static_cast<std::byte>(0xa5);
constexpr auto kNan = static_cast<std::byte>(0xff);  // in every float type

std::vector<std::uint64_t> values_for(const ParityPair& pair, std::uint32_t rows) {
  std::vector<std::uint64_t> values = pair.values;
  values[parameter_index(*pair.batched, pair.batched->batch->rows)] = rows;
  return values;
}

[[noreturn]] void refuse(const ParitySpecs& specs, std::string message) {
  Error error(Stage::Build, "parity", std::move(message));
  error.kernel = specs.batched.name;
  throw error.refresh();
}

std::string_view name_in_batched(const KernelBatch& batch, std::string_view name,
                                 bool single_is_scalar, const KernelDescription& batched,
                                 const void* spec) {
  for (const TwinOperand& operand : batch.renamed) {
    if (operand.single != name) continue;
    const std::size_t i = argument_index(batched, operand.batched);
    if (batched.is_present_of(spec, i) || !single_is_scalar) return operand.batched;
  }
  return name;
}

ParityOperand operand_of(const ParitySpecs& specs, std::size_t single) {
  const ArgumentInfo& info = specs.single.arguments[single];
  ParityOperand operand;
  operand.single = single;
  operand.scalar = info.role == ArgumentRole::Scalar;
  operand.written = is_written(info.role);
  const std::string_view name = name_in_batched(*specs.batched.batch, info.name, operand.scalar,
                                                specs.batched, specs.batched_spec.get());
  operand.batched = argument_index(specs.batched, name);
  const bool memory = is_memory(specs.batched.arguments[operand.batched].role);
  if (operand.scalar && !memory) return operand;
  operand.type = specs.batched.type_of(specs.batched_spec.get(), operand.batched);
  operand.repacked = specs.batched.repacked_of(specs.batched_spec.get(), operand.batched);
  operand.elements = operand.scalar ? 1 : specs.single.elements_of(specs.single_spec.get(), single);
  const std::uint64_t all = specs.batched.elements_of(specs.batched_spec.get(), operand.batched);
  operand.by_row = all == operand.elements * specs.rows;
  if (!operand.by_row && all != operand.elements) {
    refuse(specs, format_text("{} has {} elements for {} rows, the twin's {} has {}; an operand "
                              "has as many for each row, or as many for all; correct the twin",
                              name, all, specs.rows, info.name, operand.elements));
  }
  return operand;
}

std::uint64_t bytes_of(const ParityOperand& operand, std::uint64_t rows) {
  return rows * bytes(operand.type, operand.elements);
}

}  // namespace

ParitySpecs::ParitySpecs(const ParityPair& pair, std::uint32_t count)
    : batched(*pair.batched),
      single(pair.batched->batch->twin()),
      batched_spec(batched.make_spec(values_for(pair, count))),
      single_spec(batched.batch->twin_of(batched_spec.get())),
      rows(count) {}

std::vector<ParityOperand> parity_operands(const ParitySpecs& specs) {
  std::vector<ParityOperand> operands;
  for (std::size_t i = 0; i < specs.single.arguments.size(); ++i) {
    const ArgumentRole role = specs.single.arguments[i].role;
    const bool takes = is_memory(role) || role == ArgumentRole::Scalar;
    if (takes && specs.single.is_present_of(specs.single_spec.get(), i))
      operands.push_back(operand_of(specs, i));
  }
  return operands;
}

ParityRows::ParityRows(const Device& device, const ParityPair& pair, const ParityOptions& options)
    : pair_(pair),
      context_(device),
      gpu_(gpu_of(device.info())),
      specs_(pair, *std::max_element(options.rows.begin(), options.rows.end())),
      operands_(parity_operands(specs_)),
      elements_(operands_.size()),
      numbers_(operands_.size()) {
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const ParityOperand& operand = operands_[i];
    const ArgumentInfo& info = specs_.batched.arguments[operand.batched];
    const std::uint64_t seed = options.seed * 977 + i;
    const std::uint32_t rows = operand.by_row ? specs_.rows : 1;
    if (operand.scalar && !operand.by_row) {
      numbers_[i] = random_scalar(info, seed);
    } else if (operand.written) {
      elements_[i].assign(static_cast<std::size_t>(bytes_of(operand, rows)), kNan);
    } else if (operand.repacked.columns != 0) {
      elements_[i] = random_elements(operand.repacked, operand.elements, info, seed);
    } else {
      elements_[i] = random_elements(operand.type, rows * operand.elements, info, seed);
    }
  }
}

// After the passes of a launcher. The gates have seen the code.
Function ParityRows::load(const KernelDescription& kernel, const void* spec) const {
  const Device& device = context_.device();
  const optimize::PassOptions passes;
  const Pipeline pipeline{&device.target(), &passes, false, &device.log(), &device.trace()};
  const KernelText text = pipeline.from_described(kernel, spec);
  return CheckedModule::load(context_, text.module, {}).function(kernel.name);
}

std::vector<std::byte> ParityRows::rows_of(std::size_t operand, std::uint32_t first,
                                           std::uint32_t count) const {
  const ParityOperand& of = operands_[operand];
  if (!of.by_row) return elements_[operand];
  const auto begin = elements_[operand].begin() + static_cast<std::ptrdiff_t>(bytes_of(of, first));
  return {begin, begin + static_cast<std::ptrdiff_t>(bytes_of(of, count))};
}

// Inputs end where the served rows end, so that a read beyond them is out of bounds.
ParityRows::Memories ParityRows::allocate(bool batched, std::uint32_t first, std::uint32_t served,
                                          std::uint32_t rows) const {
  Memories memories;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const ParityOperand& operand = operands_[i];
    if (operand.scalar && !(batched && operand.by_row)) continue;
    Memory memory;
    memory.before = rows_of(i, first, operand.written ? rows : served);
    if (operand.written) {
      memory.before.insert(memory.before.begin(), kGuardBytes, kGuard);
      memory.before.insert(memory.before.end(), kGuardBytes, kGuard);
    }
    memory.buffer = Buffer<u8>(context_, as_u8(memory.before));
    memories.emplace(i, std::move(memory));
  }
  return memories;
}

std::vector<OperandValue> ParityRows::values(const Memories& memories, bool batched,
                                             std::uint32_t row) const {
  const KernelDescription& kernel = batched ? specs_.batched : specs_.single;
  std::vector<OperandValue> values;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const ParityOperand& operand = operands_[i];
    const std::string_view name = kernel.arguments[batched ? operand.batched : operand.single].name;
    if (const auto memory = memories.find(i); memory != memories.end()) {
      const std::uint64_t guard = operand.written ? kGuardBytes : 0;
      values.push_back({name,
                        {memory->second.buffer.address().value + guard,
                         memory->second.before.size() - 2 * guard},
                        0});
    } else if (operand.by_row) {
      values.push_back({name, {}, to_values(operand.type, rows_of(i, row, 1))[0]});
    } else {
      values.push_back({name, {}, numbers_[i]});
    }
  }
  return values;
}

// Waits for the launch. Returns what went wrong.
std::string ParityRows::launch(const Job& job, const Stream& stream, Buffer<u8>& workspace) const {
  const ErasedValue operands = job.kernel.make_operands(job.operands);
  const WorkspaceNeed need =
      job.kernel.workspace_of == nullptr ? WorkspaceNeed{} : job.kernel.workspace_of(job.spec);
  if (!need.none() && workspace.size() == 0) {
    workspace = Buffer<u8>(context_, need.tickets + need.parts);
    workspace.fill_bytes(0);
  }
  alignas(16) std::array<std::byte, kMaxArgumentBytes> block{};
  job.kernel.pack_of(job.spec, operands.get(), workspace.address().value, block.data());
  if (!job.kernel.tensor_maps.empty()) {
    encode_tensor_maps(context_.core(), job.kernel, block.data());
  }
  const Device& device = context_.device();
  const std::size_t before = device.findings(job.kernel.name).size();
  std::string error;
  try {
    job.function.launch(stream, job.kernel.geometry_of(job.spec, gpu_),
                        {block.data(), job.kernel.block_bytes});
    stream.synchronize();
  } catch (const Error& thrown) {
    error = thrown.message;
  }
  const std::vector<LaunchFinding> findings = device.findings(job.kernel.name);
  for (std::size_t i = before; i < findings.size(); ++i) {
    if (findings[i].finding.severity != Severity::Note) return findings[i].text;
  }
  return error;
}

// The outputs; returns which bytes around them were changed.
std::string ParityRows::read(const Memories& memories, Outputs& outputs) const {
  for (const auto& [i, memory] : memories) {
    if (!operands_[i].written) continue;
    std::vector<std::byte> after(memory.before.size());
    memory.buffer.read({reinterpret_cast<std::uint8_t*>(after.data()), after.size()});
    const auto end = after.end() - kGuardBytes;
    const auto begin = after.begin() + kGuardBytes;
    const auto guards = [](std::byte byte) { return byte == kGuard; };
    if (!std::all_of(after.begin(), begin, guards) || !std::all_of(end, after.end(), guards)) {
      return format_text("bytes around {} were changed; a kernel writes its outputs alone",
                         specs_.single.arguments[operands_[i].single].name);
    }
    outputs[i].assign(begin, end);
  }
  return {};
}

std::string ParityRows::run_single(const Function& function, std::uint32_t row,
                                   Verification& result) {
  const Memories memories = allocate(false, row, 1, 1);
  const Stream stream(context_);
  Buffer<u8> workspace;
  const Job job{function, specs_.single, specs_.single_spec.get(), values(memories, false, row)};
  if (std::string error = launch(job, stream, workspace); !error.empty()) return error;
  if (std::string error = read(memories, expected_[row]); !error.empty()) return error;
  compare_with_reference(row, result);
  return result.wrong == 0 ? std::string() : result.first_wrong;
}

void ParityRows::compare_with_reference(std::uint32_t row, Verification& result) const {
  HostOperands host;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const ParityOperand& operand = operands_[i];
    const std::string_view name = specs_.single.arguments[operand.single].name;
    if (operand.scalar && !operand.by_row) {
      host.all.push_back({name, {numbers_[i]}, {}});
      continue;
    }
    const bool repacked = operand.repacked.columns != 0;
    const std::vector<std::byte> elements =
        repacked ? unpack_rows(operand.repacked.type, operand.repacked.columns, elements_[i])
                 : rows_of(i, row, 1);
    const ElementType type = repacked ? operand.repacked.type : operand.type;
    std::vector<double> numbers = to_values(type, elements);
    if (operand.written) std::fill(numbers.begin(), numbers.end(), 0.0);
    host.all.push_back({name, std::move(numbers), magnitudes_of(type, elements)});
  }
  specs_.single.reference_of(specs_.single_spec.get(), host);
  const ErrorBound bound = specs_.single.bound_of(specs_.single_spec.get());
  OutputCheck check(result, bound);
  for (const auto& [i, got] : expected_[row]) {
    check.output(operands_[i].type, got, rows_of(i, row, 1),
                 host[specs_.single.arguments[operands_[i].single].name]);
  }
}

gates::ParityCheck ParityRows::reference() {
  const Function function = load(specs_.single, specs_.single_spec.get());
  expected_.assign(specs_.rows, {});
  Verification result;
  for (std::uint32_t row = 0; row < specs_.rows; ++row) {
    const std::string error = run_single(function, row, result);
    if (error.empty()) continue;
    return {"reference", false, format_text("{}, row {}: {}", specs_.single.name, row, error), {}};
  }
  return {"reference",
          result.compared != 0,
          format_text("{} rows of the twin are within the fp64 bound; largest error {:.3f} of it",
                      specs_.rows, result.worst_share),
          {}};
}

// Rows that are served have the twin's bits, the others are still NaN.
std::string ParityRows::compare(const Outputs& outputs, std::uint32_t served,
                                std::uint32_t rows) const {
  for (const auto& [i, got] : outputs) {
    const ParityOperand& operand = operands_[i];
    const std::string_view name = specs_.batched.arguments[operand.batched].name;
    const auto size = static_cast<std::size_t>(bytes_of(operand, 1));
    for (std::uint32_t row = 0; row < rows; ++row) {
      const auto is = std::span(got).subspan(row * size, size);
      const std::vector<std::byte> kept(size, kNan);
      const std::vector<std::byte>& should = row < served ? expected_[row].at(i) : kept;
      if (std::memcmp(is.data(), should.data(), size) == 0) continue;
      if (row >= served) {
        return format_text(
            "m_dim = {}: row {} of {} was written; rows from m_dim on stay as they "
            "are; guard each row by a comparison with m_dim",
            served, row, name);
      }
      const std::vector<double> a = to_values(operand.type, is);
      const std::vector<double> b = to_values(operand.type, should);
      std::size_t at = 0;
      while (at + 1 < a.size() && a[at] == b[at]) ++at;
      return format_text("row {} of {} differs from the twin on that row: element {} is {}, not {}",
                         row, name, at, a[at], b[at]);
    }
  }
  return {};
}

std::string ParityRows::run_rows(const Job& job, std::uint32_t served, std::uint32_t rows) const {
  const Memories memories = allocate(true, 0, served, rows);
  Job own = job;
  own.operands = values(memories, true, 0);
  if (specs_.batched.batch->strategy == BatchStrategy::RegisterUnroll)
    own.operands.push_back({kRowCount, {}, static_cast<double>(served)});
  const Stream stream(context_);
  Buffer<u8> workspace;
  for (const char* const which : {"first", "second"}) {
    Outputs outputs;
    std::string error = launch(own, stream, workspace);
    if (error.empty()) error = read(memories, outputs);
    if (error.empty()) error = compare(outputs, served, rows);
    if (!error.empty()) return format_text("{} launch: {}", which, error);
  }
  return {};
}

gates::ParityCheck ParityRows::rows(std::uint32_t rows) const {
  const std::string name = format_text("M = {}", rows);
  const ParitySpecs specs(pair_, rows);
  const Function function = load(specs.batched, specs.batched_spec.get());
  const Job job{function, specs.batched, specs.batched_spec.get(), {}};
  std::vector<std::uint32_t> counts = {rows};
  const bool unroll = specs.batched.batch->strategy == BatchStrategy::RegisterUnroll;
  if (unroll && rows > 1) counts.push_back(rows - 1);
  if (unroll && rows > 2) counts.push_back(1);
  std::string served;
  for (const std::uint32_t count : counts) {
    const std::string error = run_rows(job, count, rows);
    if (!error.empty()) return {name, false, error, {}};
    if (count != rows) served += (served.empty() ? "" : ", ") + std::to_string(count);
  }
  std::string detail = "each row has the twin's bits, twice";
  if (!served.empty()) detail += format_text("; m_dim = {} leaves the other rows", served);
  return {name, true, std::move(detail), {}};
}

gates::ParityCheck ParityRows::refusal() const {
  const Memories memories = allocate(true, 0, specs_.rows, specs_.rows);
  std::vector<OperandValue> operands = values(memories, true, 0);
  operands.push_back({kRowCount, {}, specs_.rows + 1.0});
  try {
    specs_.batched.check_of(specs_.batched_spec.get(),
                            specs_.batched.make_operands(operands).get());
  } catch (const Error& error) {
    const bool right =
        error.code == "arguments" && error.message.find(kRowCount) != std::string::npos;
    return {"m_dim", right, error.message, {}};
  }
  return {"m_dim",
          false,
          format_text("m_dim = {} of a kernel that was built for {} rows is not refused; more rows "
                      "than the code serves have no result; refuse them in Describe<K>::check",
                      specs_.rows + 1, specs_.rows),
          {}};
}

}  // namespace ptxgen::inline v0
