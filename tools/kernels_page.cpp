// tools/kernels_page.cpp - writes docs/kernels.md and docs/launcher.md's reference
//
// usage: kernels_page FILE             writes the page, or the part of launcher.md after its marker
//        kernels_page --check FILE     0 if the file is up to date
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "ptxgen/kernels.hpp"

namespace {

using namespace ptxgen;

std::string range_of(const ParameterInfo& info) {
  if (info.words.empty()) {
    const std::string range = std::to_string(info.min) + " to " + std::to_string(info.max);
    if (info.multiple_of == 1) return range;
    return range + ", multiples of " + std::to_string(info.multiple_of);
  }
  std::string text;
  for (const std::string_view word : info.words) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text;
}

std::string default_of(const ParameterInfo& info) {
  if (info.default_value < info.words.size()) return std::string(info.words[info.default_value]);
  return std::to_string(info.default_value);
}

std::string notes_of(const ArgumentInfo& info) {
  std::string text(info.doc);
  if (info.optional) text += "; only in some shapes";
  for (const std::string_view other : info.may_alias) {
    if (!other.empty()) text += "; may be " + std::string(other);
  }
  return text;
}

void write_kernel(std::ostream& out, const KernelDescription& kernel) {
  out << "\n## " << kernel.name << "\n\n"
      << kernel.doc << "\n\nAccess: " << kernel.access_pattern
      << ".\n\n| parameter | default | values | a module each | |\n|---|---|---|---|---|\n";
  for (const ParameterInfo& info : kernel.parameters) {
    out << "| `" << info.name << "` | " << default_of(info) << " | " << range_of(info) << " | "
        << (info.specializes ? "yes" : "no") << " | " << info.doc << " |\n";
  }
  out << "\n| operand | role | type | |\n|---|---|---|---|\n";
  const ErasedValue spec = kernel.make_spec(kernel.default_values());
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const ArgumentInfo& info = kernel.arguments[i];
    const bool memory = is_memory(info.role);
    out << "| `" << info.name << "` | " << to_string(info.role) << " | "
        << (memory ? to_string(kernel.type_of(spec.get(), i)) : ptx::name(info.scalar)) << " | "
        << notes_of(info) << " |\n";
  }
  const ErrorBound bound = kernel.bound_of(spec.get());
  out << "\nError at the default shape: ";
  if (bound.exact) {
    out << "none, the reference rounded once to the type.\n";
  } else {
    out << bound.relative << " of the magnitude";
    if (bound.absolute > 0) out << " and " << bound.absolute;
    out << ", and one rounding to the type.\n";
  }
}

std::string page() {
  std::ostringstream out;
  out << "# The kernels\n\nWritten by `tools/kernels_page` from the descriptions; a test keeps it "
         "up "
         "to date. [described_kernel.md](described_kernel.md)\nexplains the terms. Types of "
         "operands "
         "are those at the parameters' defaults.\n";
  for (const KernelDescription& kernel : catalog()) write_kernel(out, kernel);
  return out.str();
}

/// The kernels' C++ types, in the catalog's order: both are kernels.def's. Their descriptions are
/// not named here, for each is instantiated where it is.
constexpr std::string_view kTypes[] = {
#define PTXGEN_KERNEL(type) #type,
#include "ptxgen/kernels/kernels.def"
#undef PTXGEN_KERNEL
};

std::string operands_of(const KernelDescription& kernel) {
  std::string text;
  for (const ArgumentInfo& info : kernel.arguments) {
    if (info.role == ArgumentRole::Shape || info.role == ArgumentRole::Workspace) continue;
    text += (text.empty() ? "`." : ", `.") + std::string(info.name) + "`";
    if (info.optional) text += " (in some shapes)";
  }
  return text;
}

std::string names_of(const KernelDescription& kernel) {
  std::string text;
  for (const ParameterInfo& info : kernel.parameters) {
    text += (text.empty() ? "`" : ", `") + std::string(info.name) + "`";
  }
  return text;
}

constexpr std::string_view kMarker =
    "<!-- Written by tools/kernels_page from here to the end. -->\n";

// The calls of `launch` and `plan`, kernel by kernel.
std::string reference() {
  std::ostringstream out;
  out << "\n| `launcher.launch(KERNEL{..}, {OPERANDS}, stream)` | name for `KernelCall`, C and "
         "`ptxgen` | parameters | operands |\n|---|---|---|---|\n";
  const std::string_view* type = kTypes;
  for (const KernelDescription& kernel : catalog()) {
    out << "| `" << *type++ << "` | `" << kernel.name << "` | " << names_of(kernel) << " | "
        << operands_of(kernel) << " |\n";
  }
  return out.str();
}

/// What the file should contain.
std::string expected(const std::string& file) {
  const std::size_t marker = file.find(kMarker);
  if (marker == std::string::npos) return page();
  return file.substr(0, marker + kMarker.size()) + reference();
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (!check && (argc != 2 || argv[1][0] == '-')) {
    std::cerr << "usage: kernels_page [--check] FILE\n";
    return 2;
  }
  const char* const path = argv[argc - 1];
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const std::string text = expected(file);
  if (file == text) return 0;
  if (check) {
    std::cerr << path << " is not up to date; run: kernels_page " << path << "\n";
    return 1;
  }
  std::ofstream(path, std::ios::binary) << text;
  return 0;
}
