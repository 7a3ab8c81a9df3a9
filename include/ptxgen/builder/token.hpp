// ptxgen/builder/token.hpp - memory operations ordered by tokens
#pragma once

#include "ptxgen/support/language.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/builder/kernel_builder.hpp"
#include "ptxgen/tile/tokens.hpp"

// Not part of ptxgen/builder.hpp.

namespace ptxgen::inline v0 {

using tile::TokenOrder;
using tile::TokenScope;

template <class T>
class TilePart;  // ptxgen/builder/tile.hpp

/// Orders operations: an operation comes after the one whose token it takes. No value at run time.
class Token {
 public:
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }

 private:
  friend class TokenProgram;
  Token(const void* program, std::uint32_t id) noexcept : program_(program), id_(id) {}
  const void* program_;
  std::uint32_t id_;
};

/// The threads between which a program's tokens order operations.
struct TokenThreads {
  enum class Barrier : std::uint8_t {
    None,      ///< each thread's own operations: program order is enough
    Sync,      ///< `bar.sync number`, of all threads of the block or of `threads` of them
    Mbarrier,  ///< an mbarrier in shared memory
  };
  Barrier barrier = Barrier::None;
  unsigned number = 0;
  unsigned threads = 0;  ///< that take part, 0 for all of the block

  [[nodiscard]] static constexpr TokenThreads own() noexcept { return {}; }
  /// All threads of the block, by `bar.sync 0`.
  [[nodiscard]] static constexpr TokenThreads block() noexcept { return {Barrier::Sync, 0, 0}; }
  /// `count` warps of the block, by a barrier of their own: 1 to 15, and no other use.
  [[nodiscard]] static constexpr TokenThreads warps(unsigned count, unsigned number) noexcept {
    return {Barrier::Sync, number, 32 * count};
  }
  /// All `threads` of the block, by an mbarrier.
  [[nodiscard]] static constexpr TokenThreads mbarrier(unsigned threads) noexcept {
    return {Barrier::Mbarrier, 0, threads};
  }
};

/// The order, the scope, and the token that an operation takes.
struct TokenUse {
  TokenOrder order = TokenOrder::Weak;
  TokenScope scope = TokenScope::None;
  const Token* after = nullptr;
};

/// What a load or an atomic operation gives.
template <class T>
struct Loaded {
  Value<T> value;
  Token token;
};

/// What a load of a tile gives: the thread's elements, as `TilePart::load`.
template <class T>
struct LoadedTile {
  std::vector<Value<T>> values;
  Token token;
};

/// How `atomic_rmw` combines.
enum class TokenRmw : std::uint8_t { Add, Min, Max, And, Or, Xor, Exchange };

/// Token-ordered operations of a kernel. Weak ones are plain loads and stores, the others
/// ld.relaxed, ld.acquire, st.release, atom.acq_rel and so on with the scope: block is .cta,
/// cluster .cluster, device .gpu, system .sys.
///
/// Operations are emitted in the order of the calls, which satisfies every token within a thread: a
/// token exists before it is taken. Between threads, one operation of all of them comes after
/// another if a barrier is between the two: with `TokenThreads` other than `own` each operation
/// that takes the token of an operation is preceded by a barrier. That is more than most programs
/// need; the pass `tokens` removes each `bar.sync` of all threads that orders nothing else. All
/// threads that take part execute each call that takes a token; which of them access memory is said
/// by masks. Mistakes throw as everywhere in the builder ("tokens"), by the rules of
/// `tile::verify_tokens`.
class TokenProgram {
  using Site = SourceLocation;

 public:
  explicit TokenProgram(KernelBuilder& k) noexcept : k_(&k) {}
  /// An mbarrier takes 8 bytes of shared memory, which thread 0 of a block in one dimension
  /// initialises here: all threads come by, and no other part of the kernel knows of it.
  TokenProgram(KernelBuilder& k, TokenThreads threads, Site site = Site::current());
  TokenProgram(const TokenProgram&) = delete;
  TokenProgram& operator=(const TokenProgram&) = delete;

  [[nodiscard]] Token make_token(Site site = Site::current());
  /// After all of them; two or more.
  [[nodiscard]] Token join_tokens(std::initializer_list<Token> tokens, Site site = Site::current());

  template <class T, class S>
  [[nodiscard]] Loaded<T> load_ptr(const Ptr<T, S>& p, const TokenUse& use = {},
                                   Site site = Site::current()) {
    const Token token = record(tile::TokenAccess::Load, use, type_name<T>(), 0, false, site);
    return {k_->ld(p, Load{.order = order(use), .scope = scope(use)}, site), token};
  }
  /// `padding` where the mask does not hold, without an access.
  template <class T, class S, class D>
  [[nodiscard]] Loaded<T> load_ptr(const Ptr<T, S>& p, const In<pred>& mask, const D& padding,
                                   const TokenUse& use = {}, Site site = Site::current()) {
    const Token token = record(tile::TokenAccess::Load, use, type_name<T>(), 0, true, site);
    return {
        k_->ld_predicated(p, mask, padding, Load{.order = order(use), .scope = scope(use)}, site),
        token};
  }
  template <class T, class S, class A>
  Token store_ptr(const Ptr<T, S>& p, const A& value, const TokenUse& use = {},
                  Site site = Site::current()) {
    const Token token = record(tile::TokenAccess::Store, use, type_name<T>(), 1, false, site);
    k_->st(p, value, Store{.order = order(use), .scope = scope(use)}, site);
    return token;
  }
  /// Where the mask holds.
  template <class T, class S, class A>
  Token store_ptr(const Ptr<T, S>& p, const A& value, const In<pred>& mask,
                  const TokenUse& use = {}, Site site = Site::current()) {
    const Token token = record(tile::TokenAccess::Store, use, type_name<T>(), 1, true, site);
    k_->guarded(mask,
                [&] { k_->st(p, value, Store{.order = order(use), .scope = scope(use)}, site); });
    return token;
  }
  template <class T, class S, class A>
  Loaded<T> atomic_rmw(TokenRmw how, const Ptr<T, S>& p, const A& value, const TokenUse& use,
                       Site site = Site::current()) {
    const Token token = record(tile::TokenAccess::Rmw, use, type_name<T>(), 1, false, site);
    return {combined(how, p, value, Atomic{order(use), scope(use)}, site), token};
  }
  /// Writes `value` where memory holds the bits of `expected`.
  template <class T, class S, class A, class B>
  Loaded<T> atomic_cas(const Ptr<T, S>& p, const A& expected, const B& value, const TokenUse& use,
                       Site site = Site::current()) {
    const Token token = record(tile::TokenAccess::Cas, use, type_name<T>(), 2, false, site);
    return {k_->atom_cas(p, expected, value, Atomic{order(use), scope(use)}, site), token};
  }

  /// A tile of a view, by all threads of the part's group; with ptxgen/builder/tile.hpp. Accesses
  /// through views are weak.
  template <class T>
  [[nodiscard]] LoadedTile<T> load_view(TilePart<T>& part, const TokenUse& use = {},
                                        Site site = Site::current()) {
    check_view(tile::TokenAccess::Load, use, site);
    const Token token = record(tile::TokenAccess::Load, use, type_name<T>(), 0, false, site);
    return {part.load(site), token};
  }
  template <class T, class Values>
  Token store_view(TilePart<T>& part, const Values& values, const TokenUse& use = {},
                   Site site = Site::current()) {
    check_view(tile::TokenAccess::Store, use, site);
    const Token token = record(tile::TokenAccess::Store, use, type_name<T>(), 1, false, site);
    part.store(values, site);
    return token;
  }

  /// Combines a tile of a view with values, as `TilePart::reduce<kHow>`: relaxed, with a scope.
  template <auto kHow, class T, class Values>
  Token reduce_view(TilePart<T>& part, const Values& values, const TokenUse& use,
                    Site site = Site::current()) {
    const Token token = record(tile::TokenAccess::Reduce, use, type_name<T>(), 1, false, site);
    part.template reduce<kHow>(values, scope(use), site);
    return token;
  }

  /// The program in the form of `tile::verify_tokens`, each operation with its C++ line.
  [[nodiscard]] std::string text() const;
  /// The C++ call that gave the token.
  [[nodiscard]] const SourceLocation& site_of(const Token& token) const {
    return operations_[token.id_].site;
  }

 private:
  struct Operation {
    std::string text;
    SourceLocation site;
    bool accesses = false;  ///< it, or one whose token it joins, accesses memory
  };
  template <class T>
  static std::string_view type_name() noexcept {
    return ptx::name(T::kType);
  }
  [[nodiscard]] static Order order(const TokenUse& use) noexcept;
  [[nodiscard]] static Scope scope(const TokenUse& use) noexcept;
  Token add(std::string text, bool accesses, Site site);
  void order_threads(Site site);
  void check_token(const Token& token, Site site);
  void check_view(tile::TokenAccess access, const TokenUse& use, Site site);
  /// Checks and records an operation with `values` operands beside the pointer.
  Token record(tile::TokenAccess access, const TokenUse& use, std::string_view type,
               unsigned values, bool masked, Site site);
  template <class T, class S, class A>
  Value<T> combined(TokenRmw how, const Ptr<T, S>& p, const A& value, const Atomic& atomic,
                    Site site) {
    switch (how) {
      case TokenRmw::Min:
        return k_->atom_min(p, value, atomic, site);
      case TokenRmw::Max:
        return k_->atom_max(p, value, atomic, site);
      case TokenRmw::And:
        return k_->atom_and(p, value, atomic, site);
      case TokenRmw::Or:
        return k_->atom_or(p, value, atomic, site);
      case TokenRmw::Xor:
        return k_->atom_xor(p, value, atomic, site);
      case TokenRmw::Exchange:
        return k_->atom_exch(p, value, atomic, site);
      case TokenRmw::Add:
        break;
    }
    return k_->atom_add(p, value, atomic, site);
  }

  KernelBuilder* k_;
  TokenThreads threads_;
  std::optional<Ptr<u64, Shared>> mbarrier_;
  std::optional<Var<u32>> phase_;  ///< parity of the next phase
  std::vector<Operation> operations_;
};

}  // namespace ptxgen::inline v0
