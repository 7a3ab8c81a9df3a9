// tests/ptx/module_generator.cpp - random legal PTX modules
#include "ptx/module_generator.hpp"

#include <ostream>

#include "ptx/function_generator.hpp"
#include "ptx/op_line.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::test {

using namespace ptx;

namespace {

class ModuleGenerator {
 public:
  explicit ModuleGenerator(const Recipe& recipe) : recipe_(recipe), dice_(recipe.seed) {}

  Module run() {
    const Target& target = dice_.pick(targets());
    module_.target = target.name;
    around_.module = &module_;
    around_.target = {target.sm, target.variant};
    around_.rows = free_rows(around_.target);
    files();
    // What functions store at the end; `places[0]`.
    Variable out;
    out.name = name("results");
    out.linkage = Linkage::Visible;
    out.type = Type::b8;
    out.alignment = 16;
    out.dimensions = {512};
    add_variable(out);
    for (std::uint32_t i = dice_.between(1, 6); i > 0; --i) variable();
    dynamic_shared();
    if (dice_.chance(20)) pragma();
    const std::uint32_t kernels = dice_.between(1, std::max(1u, recipe_.functions));
    for (unsigned i = 0; i + kernels < std::max(1u, recipe_.functions); ++i) function(false);
    for (unsigned i = 0; i < kernels; ++i) function(true);
    module_.version = lowest_version(module_, module_.target);
    if (dice_.chance(30)) module_.version = {9, 0};
    return std::move(module_);
  }

 private:
  NameId name(std::string_view text) { return module_.names.intern(text); }
  NameId new_name(std::string_view stem) {
    return name(std::string(stem) + std::to_string(next_name_++));
  }

  void item(Item::Kind kind, std::size_t index, NameId text = {}) {
    Item item;
    item.kind = kind;
    item.index = static_cast<std::uint32_t>(index);
    item.text = text;
    module_.items.push_back(item);
  }

  void files() {
    const std::uint32_t count = dice_.below(3);
    for (std::uint32_t i = 1; i <= count; ++i) {
      SourceFile file;
      file.number = i;
      file.path = name("folder/source " + std::to_string(i) + ".cu");
      file.has_time = dice_.chance(50);
      if (file.has_time) {
        file.timestamp = dice_.below(1u << 30);
        file.size = dice_.below(100000);
      }
      module_.files.push_back(file);
      item(Item::Kind::File, module_.files.size() - 1);
    }
  }

  void pragma() { item(Item::Kind::Pragma, 0, name("nounroll")); }

  // Variables ---------------------------------------------------------------------------------

  void add_variable(const Variable& v) {
    module_.variables.push_back(v);
    item(Item::Kind::Variable, module_.variables.size() - 1);
    Place place;
    place.symbol = add_symbol(module_, v.name, SymbolKind::Variable, kNone,
                              static_cast<std::uint32_t>(module_.variables.size() - 1));
    place.space = v.space;
    place.bytes = size_in_bytes(v);
    place.alignment = natural_alignment(v);
    around_.places.push_back(place);
  }

  void dynamic_shared() {
    if (!dice_.chance(40)) return;
    Variable v;
    v.name = new_name("dynamic_");
    v.space = Space::Shared;
    v.linkage = Linkage::Extern;
    v.type = Type::b8;
    v.alignment = 16;
    v.dimensions = {0};
    add_variable(v);
  }

  void variable() {
    constexpr Type kTypes[] = {Type::b8,  Type::b16, Type::b32, Type::b64, Type::u8,
                               Type::u16, Type::u32, Type::u64, Type::s8,  Type::s16,
                               Type::s32, Type::s64, Type::f32, Type::f64};
    constexpr Space kSpaces[] = {Space::Global, Space::Global, Space::Const, Space::Shared};
    Variable v;
    v.name = new_name(dice_.chance(50) ? "data_" : "$_ZN4name");
    v.space = dice_.pick(kSpaces);
    v.type = dice_.pick(kTypes);
    if (dice_.chance(60)) v.alignment = dice_.chance(50) ? 16 : 8;
    for (std::uint32_t i = dice_.below(3); i > 0; --i) v.dimensions.push_back(dice_.between(1, 9));
    if (v.dimensions.empty() && dice_.chance(20)) v.vector = bytes(v.type) > 4 ? 2 : 4;
    if (v.space == Space::Global) {
      constexpr Linkage kLinkages[] = {Linkage::None, Linkage::None, Linkage::Visible,
                                       Linkage::Weak};
      v.linkage = dice_.pick(kLinkages);
      v.managed = dice_.chance(8);
      if (v.managed) v.linkage = Linkage::Visible;
    }
    if (v.space != Space::Shared && dice_.chance(70)) initialise(v);
    add_variable(v);
  }

  void piece(Variable& v, InitialValue::Kind kind) {
    InitialValue value;
    value.kind = kind;
    v.initial.push_back(value);
  }

  void initialise(Variable& v) {
    v.initialised = true;
    if (!v.dimensions.empty() && v.type == Type::u8 && dice_.chance(60)) return bytes_of_address(v);
    if (v.vector > 1) {
      piece(v, InitialValue::Kind::Open);
      for (unsigned i = 0; i < v.vector; ++i) number(v);
      return piece(v, InitialValue::Kind::Close);
    }
    level(v, 0);
  }

  void level(Variable& v, std::size_t dimension) {
    if (dimension == v.dimensions.size()) return number(v);
    piece(v, InitialValue::Kind::Open);
    // The rest is zero.
    const std::uint64_t count =
        dice_.between(1, static_cast<std::uint32_t>(v.dimensions[dimension]));
    for (std::uint64_t i = 0; i < count; ++i) level(v, dimension + 1);
    piece(v, InitialValue::Kind::Close);
  }

  void number(Variable& v) {
    InitialValue value;
    if (v.type == Type::f32) {
      value.kind = InitialValue::Kind::Float32;
      value.value = random_f32(dice_);
    } else if (v.type == Type::f64) {
      value.kind = InitialValue::Kind::Float64;
      value.value = random_f64(dice_);
    } else if (v.type == Type::u64 && v.vector == 1 && dice_.chance(40)) {
      const Place& place = around_.places[0];
      value.kind = dice_.chance(50) ? InitialValue::Kind::Symbol : InitialValue::Kind::Generic;
      value.symbol = place.symbol;
      value.value = dice_.chance(50) ? dice_.below(64) : 0;
    } else {
      const Operand o = random_integer(dice_, bits(v.type), kind(v.type) == TypeKind::Signed);
      value.value = o.value;
      value.is_unsigned = o.is_unsigned;
    }
    v.initial.push_back(value);
  }

  void bytes_of_address(Variable& v) {
    v.dimensions = {8};
    v.alignment = 8;
    piece(v, InitialValue::Kind::Open);
    const bool generic = dice_.chance(50);
    for (unsigned i = 0; i < 8; ++i) {
      InitialValue value;
      value.kind = InitialValue::Kind::Masked;
      value.symbol = around_.places[0].symbol;
      value.mask = std::uint64_t{0xff} << (8 * i);
      value.masked_generic = generic;
      v.initial.push_back(value);
    }
    piece(v, InitialValue::Kind::Close);
  }

  // Functions ---------------------------------------------------------------------------------

  Variable parameter(std::string_view stem, bool entry) {
    constexpr Type kTypes[] = {Type::u32, Type::b32, Type::s32, Type::f32, Type::f64,
                               Type::u64, Type::b64, Type::u16, Type::u8};
    Variable v;
    v.name = new_name(stem);
    v.space = Space::Param;
    v.type = dice_.pick(kTypes);
    // Small values of functions travel as 32 bits.
    if (!entry && bits(v.type) < 32) v.type = Type::b32;
    if (dice_.chance(20)) {
      v.type = Type::b8;
      v.alignment = 4u << dice_.below(3);
      v.dimensions = {v.alignment * dice_.between(1, 4)};
    } else if (entry && v.type == Type::u64 && dice_.chance(70)) {
      v.pointer = true;
      v.pointer_space = dice_.chance(70) ? Space::Global : Space::Generic;
      if (dice_.chance(60)) v.pointer_alignment = 1u << dice_.below(8);
      if (v.pointer_space == Space::Generic && v.pointer_alignment == 0) v.pointer_alignment = 1;
    }
    return v;
  }

  Variable register_parameter(Function& f, std::string_view stem) {
    Variable v;
    v.name = new_name(stem);
    v.space = Space::Register;
    v.type = dice_.chance(50) ? Type::u32 : Type::f32;
    v.decl = {static_cast<std::uint32_t>(f.registers.size())};
    RegisterDecl decl;
    decl.name = v.name;
    decl.type = v.type;
    f.registers.push_back(decl);
    return v;
  }

  void directives(Function& f) {
    const auto add = [&](DirectiveKind kind, std::initializer_list<std::uint32_t> values) {
      Directive d;
      d.kind = kind;
      for (const std::uint32_t value : values) d.values[d.count++] = value;
      f.directives.push_back(d);
    };
    const std::uint32_t choice = dice_.below(6);
    if (choice == 0) add(DirectiveKind::maxntid, {dice_.between(32, 256)});
    if (choice == 1) add(DirectiveKind::maxntid, {32, dice_.between(1, 8), 1});
    if (choice == 2) add(DirectiveKind::reqntid, {dice_.between(1, 4) * 32, 2});
    if (choice <= 1 && dice_.chance(50)) add(DirectiveKind::minnctapersm, {dice_.between(1, 2)});
    if (choice == 3) add(DirectiveKind::maxnreg, {dice_.between(64, 200)});
    if (choice == 4 && around_.target.sm >= 90) add(DirectiveKind::reqnctapercluster, {2, 1, 1});
    if (choice == 5 && around_.target.sm >= 90) add(DirectiveKind::maxclusterrank, {4});
    if (dice_.chance(10)) f.pragmas.push_back(name("nounroll"));
  }

  void function(bool entry) {
    Function f;
    f.name = new_name(entry ? "kernel_" : "_Z6devicei");
    f.entry = entry;
    f.linkage = dice_.chance(80) ? Linkage::Visible : Linkage::Weak;
    if (!entry && dice_.chance(40)) f.linkage = Linkage::None;
    const std::uint32_t parameters = dice_.below(5);
    if (!entry && dice_.chance(20)) {
      if (dice_.chance(60)) f.returns.push_back(register_parameter(f, "result_"));
      for (std::uint32_t i = 0; i < parameters; ++i) {
        f.parameters.push_back(register_parameter(f, "argument_"));
      }
    } else {
      if (!entry && dice_.chance(70)) f.returns.push_back(parameter("func_retval", false));
      for (std::uint32_t i = 0; i < parameters; ++i)
        f.parameters.push_back(parameter("param_", entry));
    }
    if (entry) directives(f);
    const bool declared = !entry && dice_.chance(30);
    if (declared) {
      Function head = f;
      head.declaration = true;
      module_.functions.push_back(head);
      item(Item::Kind::Function, module_.functions.size() - 1);
    }
    module_.functions.push_back(std::move(f));
    const auto number = static_cast<std::uint32_t>(module_.functions.size() - 1);
    item(Item::Kind::Function, number);
    FunctionGenerator(dice_, around_, number).fill(recipe_.statements);
    if (entry) return;
    Callable callable;
    callable.function = number;
    callable.symbol =
        add_symbol(module_, module_.functions[number].name, SymbolKind::Function, kNone, number);
    around_.callables.push_back(callable);
  }

  const Recipe& recipe_;
  Dice dice_;
  Module module_;
  Surroundings around_;
  unsigned next_name_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Recipe& recipe) {
  return out << "Recipe{" << recipe.seed << "u, " << recipe.functions << ", " << recipe.statements
             << "}";
}

Module random_module(const Recipe& recipe) { return ModuleGenerator(recipe).run(); }

}  // namespace ptxgen::test
