// src/emulator/decode/image.cpp - loads modules: places variables, decodes functions
#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "emulator/decode/decoder.hpp"
#include "emulator/machine/warp_steps.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/machine.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// More than any GPU's shared memory; keeps sums far from overflow.
constexpr std::uint64_t kMaxShared = 1u << 24;
/// Local memory of a thread: CUDA C++ Programming Guide, technical specifications per compute
/// capability.
constexpr std::uint64_t kMaxLocal = 512u << 10;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

[[noreturn]] void refuse(const ptx::Module& module, std::string code, std::string message,
                         std::uint32_t line = 0) {
  Error error(Stage::Load, std::move(code), std::move(message));
  error.file = module.file;
  error.line = line;
  error.target = module.target;
  throw error.refresh();
}

void check(const ptx::Module& module, const ptx::Gpu& gpu) {
  for (const Finding& finding : ptx::verify(module)) {
    if (finding.severity != Severity::Error) continue;
    Error error(Stage::Verify, finding.rule, finding.message);
    error.file = finding.file;
    error.line = finding.line;
    error.kernel = finding.kernel;
    error.site = finding.cpp;
    throw error.refresh();
  }
  ptx::TargetName wanted;
  ptx::TargetName offered;
  if (ptx::parse_target_name(module.target, wanted) &&
      ptx::parse_target_name(gpu.target, offered) &&
      (wanted.sm > offered.sm ||
       (wanted.variant == ptx::Variant::Architecture && wanted.sm != offered.sm))) {
    refuse(module, "target",
           format_text("the PTX is for {}, but the emulated GPU '{}' is {}; choose another GPU, or "
                       "PTX for this one",
                       module.target, gpu.name, gpu.target),
           module.target_line);
  }
}

/// Allocates the module's variables.
class Placer {
 public:
  Placer(Image& image, Device& device) : image_(image), device_(device) {}

  Placement place_globals() {
    Placement placement;
    const ptx::Module& module = image_.module;
    placement.module_variables.assign(module.variables.size(), 0);
    placement.function_variables.resize(module.functions.size());
    for (std::size_t i = 0; i < module.variables.size(); ++i) {
      placement.module_variables[i] = allocate(module.variables[i], true);
    }
    for (std::size_t f = 0; f < module.functions.size(); ++f) {
      for (const ptx::Variable& variable : module.functions[f].variables) {
        placement.function_variables[f].push_back(allocate(variable, false));
      }
    }
    return placement;
  }

  void initialise(const Placement& placement) {
    const ptx::Module& module = image_.module;
    for (std::size_t i = 0; i < module.variables.size(); ++i) {
      fill(module.variables[i], placement.module_variables[i], placement);
    }
    for (std::size_t f = 0; f < module.functions.size(); ++f) {
      for (std::size_t v = 0; v < module.functions[f].variables.size(); ++v) {
        fill(module.functions[f].variables[v], placement.function_variables[f][v], placement);
      }
    }
  }

 private:
  static bool in_device_memory(const ptx::Variable& variable) {
    return variable.space == ptx::Space::Global || variable.space == ptx::Space::Const;
  }

  bool is_defined(ptx::NameId name) const {
    const auto& all = image_.module.variables;
    return std::any_of(all.begin(), all.end(), [&](const ptx::Variable& other) {
      return other.name == name && other.linkage != ptx::Linkage::Extern;
    });
  }

  std::uint64_t allocate(const ptx::Variable& variable, bool of_module) {
    if (!in_device_memory(variable)) return 0;
    const std::string name(image_.module.text(variable.name));
    if (variable.linkage == ptx::Linkage::Extern) {
      // The module may also contain its definition.
      if (of_module && is_defined(variable.name)) return 0;
      refuse(
          image_.module, "unsupported",
          format_text("variable '{}' is declared .extern, but the module does not define it", name),
          variable.line);
    }
    const std::uint64_t bytes = std::max<std::uint64_t>(ptx::size_in_bytes(variable), 1);
    if (bytes > device_.gpu().memory_bytes) {
      refuse(image_.module, "out-of-memory",
             format_text("variable '{}' has {}, the GPU has {}", name, count_text(bytes, "byte"),
                         device_.gpu().memory_bytes),
             variable.line);
    }
    const bool constant = variable.space == ptx::Space::Const;
    const std::uint64_t address =
        image_.space->allocate(bytes, format_text("variable '{}'", name),
                               constant ? AllocationKind::Constant : AllocationKind::Variable);
    if (of_module) image_.variables.push_back({name, variable.space, address, bytes});
    image_.allocations.push_back(address);
    return address;
  }

  std::uint64_t value_of(const ptx::InitialValue& item, const Placement& placement) const {
    using Kind = ptx::InitialValue::Kind;
    if (item.kind != Kind::Symbol && item.kind != Kind::Generic && item.kind != Kind::Masked) {
      return item.value;
    }
    const ptx::Symbol& symbol = image_.module.symbols[item.symbol.value];
    std::uint64_t address = item.value;
    if (symbol.kind == ptx::SymbolKind::Variable) {
      address += placement.module_variables[symbol.index];
    } else if (symbol.kind == ptx::SymbolKind::Function) {
      address += kFunctionWindow + 16 * std::uint64_t{symbol.index};
    } else if (symbol.kind == ptx::SymbolKind::FunctionVariable) {
      address += placement.function_variables[symbol.function][symbol.index];
    }
    if (item.kind == Kind::Masked && item.mask != 0) {
      return (address & item.mask) >> std::countr_zero(item.mask);
    }
    return address;
  }

  void fill(const ptx::Variable& variable, std::uint64_t address, const Placement& placement) {
    if (!in_device_memory(variable) || variable.linkage == ptx::Linkage::Extern) return;
    const std::uint64_t total = std::max<std::uint64_t>(ptx::size_in_bytes(variable), 1);
    // Variables without an initialiser are zero, as new allocations are.
    image_.space->mark(address, total);
    const std::uint64_t element = ptx::bytes(variable.type);
    // Bytes inside a brace at each depth.
    std::vector<std::uint64_t> enclosed;
    std::uint64_t size = element * variable.vector;
    if (variable.vector > 1) enclosed.push_back(size);
    for (std::size_t d = variable.dimensions.size(); d-- > 0;) {
      size *= std::max<std::uint64_t>(variable.dimensions[d], 1);
      enclosed.insert(enclosed.begin(), d == 0 ? total : size);
    }
    std::vector<std::uint64_t> starts;
    std::uint64_t at = 0;
    for (const ptx::InitialValue& item : variable.initial) {
      using Kind = ptx::InitialValue::Kind;
      if (item.kind == Kind::Open) {
        starts.push_back(at);
      } else if (item.kind == Kind::Close) {
        const std::size_t depth = starts.size() - 1;
        if (depth < enclosed.size()) at = starts.back() + enclosed[depth];
        starts.pop_back();
      } else {
        std::uint64_t value = value_of(item, placement);
        if (item.kind == Kind::Float64 && ptx::bits(variable.type) == 32) {
          value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
        } else if (item.kind == Kind::Float32 && ptx::bits(variable.type) == 64) {
          const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(value));
          value = std::bit_cast<std::uint64_t>(static_cast<double>(single));
        }
        if (at <= total && element <= total - at) {
          const auto bytes = std::as_bytes(std::span(&value, 1));
          image_.space->write(address + at, bytes.first(std::min<std::size_t>(element, 8)));
        }
        at += element;
      }
    }
  }

  Image& image_;
  Device& device_;
};

/// Functions that a kernel may call: those it names, and all whose address is taken.
std::set<std::uint32_t> reachable(const ptx::Module& module, std::uint32_t entry) {
  std::set<std::uint32_t> found;
  std::vector<std::uint32_t> work{entry};
  const auto name = [&](std::uint32_t symbol) {
    const ptx::Symbol& s = module.symbols[symbol];
    if (s.kind == ptx::SymbolKind::Function) work.push_back(s.index);
  };
  for (const ptx::Variable& variable : module.variables) {
    for (const ptx::InitialValue& item : variable.initial) {
      if (item.symbol.value != ptx::kNone) name(item.symbol.value);
    }
  }
  while (!work.empty()) {
    const std::uint32_t f = work.back();
    work.pop_back();
    const ptx::Function& function = module.functions[f];
    if (function.declaration || (function.entry && f != entry) || !found.insert(f).second) continue;
    for (const ptx::Operand& operand : function.operands) {
      if (operand.kind == ptx::OperandKind::Symbol) name(operand.id);
    }
  }
  return found;
}

/// Loads one kernel: its parameters, its shared memory, its functions.
class KernelLoader {
 public:
  KernelLoader(Image& image, Placement placement, std::uint32_t entry)
      : image_(image), module_(image.module), placement_(std::move(placement)), entry_(entry) {}

  void load() {
    describe();
    functions_ = reachable(module_, entry_);
    place_shared();
    const auto kernel = static_cast<std::uint32_t>(image_.kernels.size() - 1);
    std::vector<std::unique_ptr<Decoder>> decoders;
    for (const std::uint32_t f : functions_) {
      auto code = std::make_unique<Code>();
      code->function = &module_.functions[f];
      code->index = static_cast<std::uint32_t>(image_.codes.size());
      code->first_statement = image_.first_statement[f];
      code->kernel = kernel;
      this_().code_of_function[f] = code->index;
      if (f == entry_) this_().code = code->index;
      decoders.push_back(std::make_unique<Decoder>(image_, placement_, *code));
      image_.codes.push_back(std::move(code));
    }
    for (const auto& decoder : decoders) decoder->place();
    for (const auto& decoder : decoders) {
      decoder->decode();
      Code& code = decoder->code();
      code.first_segment = image_.segment_count;
      image_.segment_count += static_cast<std::uint32_t>(code.segments.size());
      for (const ptx::Instruction& statement : code.function->body) {
        if (statement.kind == ptx::StatementKind::Instruction &&
            depends_on_block_order(*code.function, statement)) {
          this_().order_dependent = true;
        }
      }
    }
    measure_local();
  }

 private:
  Image::KernelImage& this_() { return image_.kernel_images.back(); }

  void describe() {
    const ptx::Function& function = module_.functions[entry_];
    Program::Kernel kernel;
    kernel.name = std::string(module_.text(function.name));
    std::uint64_t offset = 0;
    for (const ptx::Variable& variable : function.parameters) {
      const std::uint64_t bytes = ptx::size_in_bytes(variable);
      offset = rounded_up(offset, std::max<std::uint32_t>(ptx::natural_alignment(variable), 1));
      if (bytes > 32764 || offset + bytes > 32764) {
        refuse(module_, "unsupported",
               format_text("the parameters of kernel '{}' take more than 32764 bytes", kernel.name),
               variable.line);
      }
      kernel.parameters.push_back({std::string(module_.text(variable.name)), variable.type,
                                   static_cast<std::uint32_t>(offset),
                                   static_cast<std::uint32_t>(bytes)});
      offset += bytes;
    }
    kernel.parameter_bytes = static_cast<std::uint32_t>(offset);
    for (const ptx::RegisterDecl& decl : function.registers) {
      const unsigned words = ptx::bits(decl.type) > 32 ? ptx::bits(decl.type) / 32 : 1;
      kernel.registers_32bit += words * decl.count * decl.vector;
    }
    for (const ptx::Directive& directive : function.directives) {
      const auto part = [&](unsigned i) {
        return i < directive.count ? directive.values[i] : std::uint32_t{1};
      };
      const Dim3 all{part(0), part(1), part(2)};
      if (directive.kind == ptx::DirectiveKind::reqntid) kernel.required_block = all;
      if (directive.kind == ptx::DirectiveKind::maxntid) {
        kernel.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(all.count(), 1024));
      }
      if (directive.kind == ptx::DirectiveKind::reqnctapercluster) kernel.required_cluster = all;
      if (directive.kind == ptx::DirectiveKind::maxclusterrank) kernel.max_cluster = part(0);
      kernel.explicit_cluster |= directive.kind == ptx::DirectiveKind::explicitcluster;
    }
    image_.kernels.push_back(std::move(kernel));
    image_.kernel_images.emplace_back();
    this_().code_of_function.assign(module_.functions.size(), kNoIndex);
  }

  void place_shared() {
    std::uint64_t offset = 0;
    std::uint64_t dynamic_alignment = 16;
    std::vector<std::uint64_t*> dynamic;
    const auto place = [&](const ptx::Variable& variable, std::uint64_t& address) {
      const std::uint64_t bytes = ptx::size_in_bytes(variable);
      const std::uint64_t alignment = std::max<std::uint32_t>(ptx::natural_alignment(variable), 1);
      if (bytes == 0) {
        dynamic.push_back(&address);
        dynamic_alignment = std::max(dynamic_alignment, alignment);
        return;
      }
      offset = rounded_up(offset, alignment);
      address = offset;
      if (bytes > kMaxShared || offset + bytes > kMaxShared) {
        refuse(module_, "unsupported",
               format_text("shared variable '{}' has {}, more than any GPU has",
                           module_.text(variable.name), count_text(bytes, "byte")),
               variable.line);
      }
      this_().shared_variables.push_back({std::string(module_.text(variable.name)),
                                          static_cast<std::uint32_t>(offset),
                                          static_cast<std::uint32_t>(bytes)});
      offset += bytes;
    };
    std::set<std::uint32_t> used;
    for (const std::uint32_t f : functions_) {
      for (const ptx::Operand& operand : module_.functions[f].operands) {
        const bool names =
            operand.kind == ptx::OperandKind::Symbol ||
            (operand.kind == ptx::OperandKind::Memory && operand.base == ptx::OperandKind::Symbol);
        if (!names) continue;
        const ptx::Symbol& symbol = module_.symbols[operand.id];
        if (symbol.kind == ptx::SymbolKind::Variable) used.insert(symbol.index);
      }
      for (std::size_t v = 0; v < module_.functions[f].variables.size(); ++v) {
        const ptx::Variable& variable = module_.functions[f].variables[v];
        if (variable.space == ptx::Space::Shared) {
          place(variable, placement_.function_variables[f][v]);
        }
      }
    }
    for (const std::uint32_t v : used) {
      if (module_.variables[v].space == ptx::Space::Shared) {
        place(module_.variables[v], placement_.module_variables[v]);
      }
    }
    const std::uint64_t total = dynamic.empty() ? offset : rounded_up(offset, dynamic_alignment);
    for (std::uint64_t* address : dynamic) *address = total;
    this_().static_shared_bytes = static_cast<std::uint32_t>(total);
    image_.kernels.back().static_shared_bytes = static_cast<std::uint32_t>(offset);
  }

  /// Local memory of a thread along the deepest chain of calls.
  void measure_local() {
    std::vector<std::uint64_t> need(image_.codes.size(), 0);
    std::vector<char> state(image_.codes.size(), 0);  // 1 on the way, 2 done
    struct Visit {
      std::uint32_t code;
      std::size_t next;
    };
    std::vector<Visit> stack{{this_().code, 0}};
    while (!stack.empty()) {
      const std::uint32_t current = stack.back().code;
      const Code& code = *image_.codes[current];
      state[current] = 1;
      if (stack.back().next < code.controls.size()) {
        const ControlDetail& detail = code.controls[stack.back().next++];
        if (detail.kind == Control::CallIndirect) this_().recursive = true;
        if (detail.kind != Control::Call) continue;
        if (state[detail.callee] == 1) this_().recursive = true;
        if (state[detail.callee] == 0) stack.push_back({detail.callee, 0});
        continue;
      }
      std::uint64_t deepest = 0;
      for (const ControlDetail& detail : code.controls) {
        if (detail.kind == Control::Call) deepest = std::max(deepest, need[detail.callee]);
      }
      need[current] = std::max(code.local_bytes, 64u) + deepest;
      state[current] = 2;
      stack.pop_back();
    }
    const std::uint64_t bytes_needed = need[this_().code];
    if (bytes_needed > kMaxLocal) {
      refuse(module_, "unsupported",
             format_text("a thread of kernel '{}' needs {} of local memory; the maximum is {}",
                         image_.kernels.back().name, count_text(bytes_needed, "byte"), kMaxLocal),
             module_.functions[entry_].line);
    }
    this_().local_bytes = static_cast<std::uint32_t>(bytes_needed);
    image_.kernels.back().local_bytes = image_.codes[this_().code]->local_bytes;
  }

  Image& image_;
  const ptx::Module& module_;
  Placement placement_;
  std::uint32_t entry_;
  std::set<std::uint32_t> functions_;
};

// Lists that grew have up to twice their size; those of a program are kept as long as it.
void shrink(ptx::Function& function) {
  function.body.shrink_to_fit();
  function.operands.shrink_to_fit();
}
void shrink(Code& code) {
  code.steps.shrink_to_fit();
  code.segments.shrink_to_fit();
  code.segment_statements.shrink_to_fit();
  code.lanes.shrink_to_fit();
  code.controls.shrink_to_fit();
  code.tracks.shrink_to_fit();
}

void load_image(Image& image, Device& device) {
  for (ptx::Function& function : image.module.functions) shrink(function);
  image.space = &device.space();
  image.sm = ptx::sm_of(device.gpu());
  check(image.module, device.gpu());
  const ptx::Module& module = image.module;
  for (const ptx::Function& function : module.functions) {
    image.first_statement.push_back(image.statement_count);
    image.statement_count += static_cast<std::uint32_t>(function.body.size());
  }
  Placer placer(image, device);
  const Placement placement = placer.place_globals();
  placer.initialise(placement);
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
    if (module.functions[f].entry && !module.functions[f].declaration) {
      KernelLoader(image, placement, f).load();
    }
  }
  for (const std::unique_ptr<Code>& code : image.codes) shrink(*code);
}

}  // namespace

Image::~Image() {
  for (const std::uint64_t address : allocations) {
    try {
      space->free(address);
    } catch (const Error&) {
      // The host has already freed it.
    }
  }
}

Image::Place Image::place(std::uint32_t statement) const noexcept {
  const auto after = std::ranges::upper_bound(first_statement, statement);
  // Functions without a body have no statements: take the last that begins here.
  if (after == first_statement.begin()) return {};
  const auto f = static_cast<std::size_t>(after - first_statement.begin() - 1);
  const ptx::Function& function = module.functions[f];
  const std::uint32_t index = statement - first_statement[f];
  if (index >= function.body.size()) return {};
  return {&function, &function.body[index]};
}

std::uint32_t Image::line(std::uint32_t statement) const noexcept {
  const Place found = place(statement);
  return found.statement == nullptr ? 0 : found.statement->line;
}

Program::Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program Program::load(Device& device, std::string_view ptx, std::string_view file) {
  Program result;
  result.image_ = Hidden<Image>::make();
  result.image_->module = ptx::parse(ptx, file);
  load_image(*result.image_, device);
  return result;
}

Program Program::load(Device& device, const ptx::Module& module) {
  Program result;
  result.image_ = Hidden<Image>::make();
  Image& image = *result.image_;
  ptx::LineMap lines;
  const std::string text = ptx::print(module, &lines);
  image.module = ptx::parse(text, module.file.empty() ? "<built>" : module.file);
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    for (std::size_t i = 0; i < function.body.size(); ++i) {
      const std::uint32_t line = lines.lines[f][i];
      if (line >= image.sites_by_line.size()) image.sites_by_line.resize(line + 1);
      image.sites_by_line[line] = module.site_of(function.body[i]);
    }
  }
  load_image(image, device);
  return result;
}

std::span<const Program::Kernel> Program::kernels() const noexcept { return image_->kernels; }

const Program::Kernel* Program::find_kernel(std::string_view name) const noexcept {
  const auto found = std::ranges::find(image_->kernels, name, &Kernel::name);
  return found == image_->kernels.end() ? nullptr : &*found;
}

Device::Extent Program::variable(std::string_view name) const noexcept {
  const auto found = std::ranges::find(image_->variables, name, &Image::VariableAddress::name);
  if (found == image_->variables.end()) return {};
  return {found->address, found->bytes};
}

Origins::Place Origins::at(std::uint32_t line) const {
  return line < places.size() ? places[line] : Place{};
}

std::string Origins::text(std::uint32_t line) const {
  const Place place = at(line);
  if (place.cpp.known()) return std::string(place.cpp.file) + ":" + std::to_string(place.cpp.line);
  if (file.empty() || place.line == 0) return {};
  return file + ":" + std::to_string(place.line);
}

void set_origins(const Program& program, std::shared_ptr<const Origins> origins) {
  program.image().origins = std::move(origins);
}

std::string Image::at_text(std::uint32_t statement) const {
  const std::uint32_t ptx_line = line(statement);
  if (origins == nullptr) return "at line " + std::to_string(ptx_line);
  const std::string place = origins->text(ptx_line);
  return place.empty() ? std::string() : "at " + place;
}

const ptx::Module& Program::module() const noexcept { return image_->module; }
const Image& Program::image() const noexcept { return *image_; }

}  // namespace ptxgen::inline v0::emulator
