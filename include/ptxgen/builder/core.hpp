// ptxgen/builder/core.hpp - the kernel under construction: emission, scopes, labels, errors
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/builder/pointer.hpp"
#include "ptxgen/builder/value.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

/// A name with the C++ line that gave it.
struct Name {
  std::string_view text;
  SourceLocation site;

  Name(const char* name, SourceLocation at = SourceLocation::current()) : text(name), site(at) {}
  Name(std::string_view name, SourceLocation at = SourceLocation::current())
      : text(name), site(at) {}
  Name(const std::string& name, SourceLocation at = SourceLocation::current())
      : text(name), site(at) {}
};

namespace detail {

/// The modifiers of an opcode, in any order; `Modifier::none` is left out.
struct ModifierList {
  std::array<ptx::Modifier, ptx::kMaxModifiers> values{};
  unsigned count = 0;

  constexpr ModifierList() = default;
  constexpr ModifierList(std::initializer_list<ptx::Modifier> list) {
    for (const ptx::Modifier w : list) add(w);
  }
  template <class E>
  constexpr void add(E modifier) {
    const auto w = static_cast<ptx::Modifier>(modifier);
    if (w != ptx::Modifier::none) values[count++] = w;
  }
  constexpr void add_if(bool condition, ptx::Modifier w) {
    if (condition) values[count++] = w;
  }
};

/// Which instruction: any row with the mnemonic wanted (the search starts there) and the modifiers.
struct Form {
  ptx::Op op;
  ModifierList modifiers;
  ptx::Contract contract = ptx::Contract::Default;
};

/// The state of a kernel under construction, for rollback.
struct Checkpoint {
  std::size_t body = 0, operands = 0, labels = 0, variables = 0, parameters = 0, prototypes = 0;
  std::size_t registers = 0, module_variables = 0, items = 0, symbols = 0, sites = 0, files = 0;
  std::size_t scopes = 0;
  std::uint32_t scope = 0, function_scopes = 1, generated_labels = 0;
  std::uint32_t dynamic_shared = ptx::kNone;
  ptx::Guard guard;
  SourceLocation last_location;
  std::array<std::uint32_t, kRegisterClasses> counts{};
};

/// Common base of the builder classes. Not for users: see KernelBuilder.
class Core {
 public:
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] std::string_view name() const noexcept { return module_.names[function().name]; }
  [[nodiscard]] const ptx::Target& target() const noexcept { return *target_; }
  /// The kernel built so far, for tests and messages.
  [[nodiscard]] const ptx::Module& module() const noexcept { return module_; }
  /// The statement emitted last as PTX, without indentation or newline.
  [[nodiscard]] std::string last_statement() const;
  [[nodiscard]] std::size_t statement_count() const noexcept { return function().body.size(); }

 protected:
  Core(Name name, std::string_view target);
  ~Core();

  // Emission. Each throws before it changes anything.
  ptx::Register result(const Form& form, RegisterClass register_class,
                       std::initializer_list<Argument> arguments, SourceLocation site);
  void into(const Form& form, ptx::Register destination, std::initializer_list<Argument> arguments,
            SourceLocation site);
  void effect(const Form& form, std::initializer_list<Argument> arguments, SourceLocation site);
  void vector_load(const Form& form, RegisterClass register_class, std::span<ptx::Register> out,
                   const Argument& address, SourceLocation site);
  void vector_store(const Form& form, const Argument& address, std::span<const Argument> values,
                    SourceLocation site);
  ptx::Register pack(const Form& form, RegisterClass register_class,
                     std::span<const Argument> values, SourceLocation site);

  /// `[pointer]`, ready for a load or store of `bytes` bytes; checks the known alignment.
  [[nodiscard]] Argument address(const PointerData& pointer, unsigned bytes, bool narrow,
                                 SourceLocation site);
  /// Address as a plain value, offset added.
  [[nodiscard]] ptx::Register address_value(const PointerData& pointer, bool narrow,
                                            SourceLocation site);
  /// The last statement writes `to` instead of the newest register of the class, which goes.
  void redirect_result(RegisterClass register_class, ptx::Register to);
  /// A predicate that is not negated (`not` where it is), for instructions that cannot negate.
  [[nodiscard]] Argument plain(const Argument& predicate);
  /// A value whose register nothing writes later: a Var is copied, a literal stays.
  [[nodiscard]] Argument stable(const Argument& argument, RegisterClass register_class,
                                ptx::Type move_type);

  /// Appends one statement; vectors among the operands are in the pool already.
  void append(const Form& form, std::span<const ptx::Operand> operands, SourceLocation site,
              bool exact_row = false);
  void append_plain(ptx::Instruction statement, std::span<const ptx::Operand> operands,
                    SourceLocation site);
  /// The operand, after a look at whether it may be used here.
  ptx::Operand use(const Argument& argument);
  /// A vector operand whose elements are appended to the function's pool.
  [[nodiscard]] ptx::Operand pool_vector(std::span<const ptx::Operand> elements);
  [[nodiscard]] ptx::Register new_register(RegisterClass register_class);
  /// Takes back the newest register of the class.
  void drop_register(RegisterClass register_class) noexcept;

  [[nodiscard]] Checkpoint checkpoint() const noexcept;
  void restore(const Checkpoint& to) noexcept;
  /// Remembers the first mistake and throws it.
  [[noreturn]] void fail(std::string_view code, std::string message, SourceLocation site);
  [[noreturn]] void fail(Error error);
  void check_open(SourceLocation site);
  void check_new_name(std::string_view name, std::string_view what, SourceLocation site);

  /// Values made while a scope is open cannot be used after it.
  std::uint32_t open_scope();
  void close_scope(std::uint32_t scope) noexcept;
  [[nodiscard]] ptx::LabelId new_label();
  [[nodiscard]] ptx::LabelId named_label(const Name& name);
  void place_label(ptx::LabelId label, SourceLocation site);
  void branch_to(ptx::LabelId label, SourceLocation site);
  void branch_to(ptx::LabelId label, const Argument& predicate, bool negated, SourceLocation site);
  /// The module; the builder refuses everything from now on.
  [[nodiscard]] ptx::Module take_module();
  /// Whether the end of the body is unreachable.
  [[nodiscard]] bool ends_with_terminator() const noexcept;

  [[nodiscard]] ptx::Function& function() noexcept { return module_.functions[0]; }
  [[nodiscard]] const ptx::Function& function() const noexcept { return module_.functions[0]; }

  std::uint32_t add_site(SourceLocation site);
  void emit_location(SourceLocation site);
  ptx::Module module_;
  const ptx::Target* target_ = nullptr;
  ptx::TargetName target_name_;
  ptx::Guard guard_;  ///< of every new statement
  std::array<ptx::DeclId, kRegisterClasses> declarations_{};
  std::array<std::vector<std::uint32_t>, kRegisterClasses> register_scopes_;
  std::vector<std::uint8_t> scope_open_;
  std::uint32_t scope_ = 0;
  std::vector<std::uint32_t> scope_parents_;
  std::vector<SourceLocation> label_sites_;  ///< first use, as long as `labels`
  std::vector<Error> first_error_;           ///< none or one
  /// Hashes of rows and modifiers that the target is known to support.
  std::array<std::uint32_t, 128> checked_{};
  std::uint32_t generated_labels_ = 0;
  std::uint32_t dynamic_shared_ = ptx::kNone;  ///< its symbol
  bool line_info_ = false;
  bool finished_ = false;
  SourceLocation last_location_;
  SourceLocation site_;  ///< of the kernel's name

  friend ptx::Register move_to_new(Core*, RegisterClass, ptx::Type, const Argument&);
  friend void move_into(Core*, ptx::Register, ptx::Type, const Argument&);
  friend PointerData advance(const PointerData&, const Index&, int, unsigned, bool);
  friend PointerData advance_bytes(const PointerData&, const Index&, bool);
  friend PointerData copy_base(Core*, ptx::Register, bool, SourceLocation);
  friend void set_base(Core*, ptx::Register, const PointerData&, bool, SourceLocation);
  friend void advance_base(Core*, ptx::Register, const Index&, int, unsigned, bool);
  friend class Transaction;
};

/// Undoes what was emitted since, unless `keep` was called.
class Transaction {
 public:
  explicit Transaction(Core& core) : core_(core), start_(core.checkpoint()) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (!kept_) core_.restore(start_);
  }
  void keep() noexcept { kept_ = true; }

 private:
  Core& core_;
  Checkpoint start_;
  bool kept_ = false;
};

/// An operand of type T with the call's line. An element `p[i]` is loaded here; lists of these are
/// written in braces, which fix the order of the loads.
template <class T, class A>
[[nodiscard]] Argument argument(const A& a, SourceLocation site) {
  if constexpr (kSame<A, In<T>> || kSame<A, SameAs<T>>) {
    return a.resolved();
  } else if constexpr (kIsRef<A>) {
    return a.load(site);
  } else {
    return In<T>(a, site);
  }
}

/// The same, for the method that a method with a number in front calls.
template <class T, class A>
[[nodiscard]] SameAs<T> same_as(const A& a, SourceLocation site) {
  return SameAs<T>(argument<T>(a, site));
}

/// The element type that operands share; literals follow the others.
template <class... A>
struct CommonElement;
template <class A>
struct CommonElement<A> {
  static_assert(kIsOperand<A>,
                "an operand must be a value of this kernel: literals alone do not say their type; "
                "use KernelBuilder::constant");
  using type = ElementOf<A>;
};
template <class A, class B>
struct CommonElement<A, B> {
  static_assert(kIsOperand<A> || kIsOperand<B>,
                "an operand must be a value of this kernel: literals alone do not say their type; "
                "use KernelBuilder::constant");
  static_assert(!kIsOperand<A> || !kIsOperand<B> || kSame<ElementOf<A>, ElementOf<B>>,
                "operands have different types: convert one of them with convert<To>()");
  using type = Choose<kIsOperand<A>, ElementOf<A>, ElementOf<B>>;
};
template <class A, class B, class C>
struct CommonElement<A, B, C> {
  using First = typename CommonElement<A, B>::type;
  static_assert(!kIsOperand<C> || kSame<ElementOf<C>, First>,
                "operands have different types: convert one of them with convert<To>()");
  using type = First;
};
template <class... A>
using Common = typename CommonElement<A...>::type;

}  // namespace detail

}  // namespace ptxgen::inline v0
