// The decoder: one engine over the generated tables.
#include "isa/decode.h"

#include <algorithm>
#include <string_view>

#include "isa/codes.h"

namespace mgx {
namespace {

constexpr u32 kScalePrefix = 0xd3ac;
constexpr u32 kSdwa = 249, kDpp = 250, kDpp8 = 233, kDpp8Fi = 234, kLiteral = 255;

bool starts(const char* text, std::string_view with) { return std::string_view(text).substr(0, with.size()) == with; }
bool contains(const char* text, std::string_view part) {
  return std::string_view(text).find(part) != std::string_view::npos;
}

class Decoder {
 public:
  Decoder(const Architecture& arch, bool wave32, const u32* words, std::size_t count)
      : generation_(arch.generation), arch_(arch), wave32_(wave32), words_(words), count_(count) {}

  Instruction run(FormatId skip = kFormats) {
    if (count_ == 0) fail("the code ends here");
    const bool scaled = arch_.name == "gfx950" && words_[0] >> 16 == kScalePrefix;
    const u32* prefix = words_;
    if (scaled) {  // two words of scales ahead of a matrix instruction
      if (count_ < 4) fail("the code ends inside an instruction");
      words_ += 2;
      count_ -= 2;
    }
    for (const Format& f : formats_of(arch_)) {
      if ((words_[0] & f.mask) != f.match || f.id == skip) continue;
      format_ = &f;
      break;
    }
    if (format_ == nullptr) fail("no format has these bits");
    used_ = format_->words;
    if (used_ > count_) fail("the code ends inside an instruction");
    const Opcode* op = format_->opcodes[bits(format_->opcode_bit, format_->opcode_width)];
    if (op == nullptr) {
      fail(std::string(format_->name) + " has no opcode " +
           std::to_string(bits(format_->opcode_bit, format_->opcode_width)));
    }
    op_ = op;
    i_.opcode = op;
    i_.form = format_->name;
    modifiers();
    escapes();
    operands();
    if (is_memory()) memory_operands();
    if (scaled) scales(prefix);
    if (starts(op_->name, "v_bitop3")) {  // the operand modifiers' bits hold a truth table
      i_.aux = static_cast<u16>(i_.omod << 6 | modifier(Modifier::abs) << 3 | modifier(Modifier::neg));
      i_.omod = 0;
      for (Operand& o : i_.o) o.neg = o.abs = false;
    }
    if (generation_ == Generation::Gfx9 && format_->id == VOP3P && is_matrix()) {
      i_.clamp = false;  // these bits say which operands are AGPRs, and cbsz, abid and blgp
      i_.cbsz = i_.neghi;
      i_.abid = static_cast<u8>(i_.opsel | modifier(Modifier::opselhi2) << 3);
      i_.blgp = i_.neglo;
      i_.opsel = i_.neglo = i_.neghi = 0;
      i_.opselhi = 7;
    }
    access();
    if (scaled) used_ = static_cast<u8>(used_ + 2);
    i_.size = static_cast<u8>(4 * used_);
    for (u8 k = 0; k < used_ && k < 5; ++k) i_.words[k] = prefix[k];
    if (i_.clamp || i_.omod || i_.dpp || i_.dpp8 || i_.sdwa || i_.opsel) i_.plain = false;
    for (u8 k = 0; k < i_.count; ++k) {
      const Operand& o = i_.o[k];
      if (o.neg || o.abs || o.sext) i_.plain = false;
    }
    return i_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw Error(why); }

  u32 bits(u32 at, u32 width) const {
    u64 low = words_[at / 32];
    if (at % 32 + width > 32) low |= u64{words_[at / 32 + 1]} << 32;
    return static_cast<u32>(low >> at % 32 & ((u64{1} << width) - 1));
  }

  u32 modifier(Modifier m) const {
    const ModifierField& f = format_->modifier(m);
    return f.width == 0 ? 0 : bits(f.bit, f.width);
  }

  u32 field(char letter) const {
    const Field* f = format_->field(letter);
    return f == nullptr ? 0 : bits(f->bit, f->width);
  }

  u32 extra_word(const char* what) {
    if (used_ >= count_) fail(std::string("the code ends before ") + what);
    return words_[used_++];
  }

  bool is_vop() const { return format_->id >= VOP1 && format_->id <= VOP3; }
  bool is_memory() const { return format_->id == SMEM || format_->id >= DS; }
  bool is_matrix() const {
    return starts(op_->name, "v_mfma") || starts(op_->name, "v_smfmac") || starts(op_->name, "v_accvgpr");
  }

  void modifiers() {
    i_.clamp = modifier(Modifier::clamp) != 0;
    i_.omod = static_cast<u8>(modifier(Modifier::omod));
    i_.opsel = static_cast<u8>(modifier(Modifier::opsel));
    if (format_->id == VOP3P) {
      i_.opselhi = static_cast<u8>(modifier(Modifier::opselhi) | modifier(Modifier::opselhi2) << 2);
      i_.neglo = static_cast<u8>(modifier(Modifier::neglo));
      i_.neghi = static_cast<u8>(modifier(Modifier::neghi));
    }
    if (format_->id == VOP3 && format_->field('s') != nullptr && contains_letter('s')) {
      i_.opsel = 0;  // the bits hold a scalar result, and there is no abs
      no_abs_ = true;
    }
    const ModifierField& offset = format_->modifier(Modifier::offset);
    if (offset.width != 0) {
      const u32 raw = bits(offset.bit, offset.width);
      const bool is_signed = format_->id != MUBUF;
      i_.offset = is_signed || offset.width == 24 ? sign_extend(raw, offset.width) : static_cast<i32>(raw);
      // gfx10's flat addresses have none: a bug of the hardware
      if (format_->id == FLAT && generation_ == Generation::Gfx10 && raw != 0) fail("an offset of a flat address");
      if (format_->id == FLAT && generation_ != Generation::Gfx12) i_.offset = static_cast<i32>(raw & 0xfff);
    }
    i_.offset0 = static_cast<u8>(modifier(Modifier::offset0));
    i_.offset1 = static_cast<u8>(modifier(Modifier::offset1));
    if (format_->id == DS) i_.offset = i_.offset0 | i_.offset1 << 8;
    i_.offen = modifier(Modifier::offen) != 0;
    i_.idxen = modifier(Modifier::idxen) != 0;
    i_.lds = format_->id == MUBUF && modifier(Modifier::lds) != 0;
    i_.returns = (modifier(Modifier::glc) | (modifier(Modifier::th) & 1)) != 0;
    const Modifier cache[] = {Modifier::glc, Modifier::slc, Modifier::scc, Modifier::dlc, Modifier::scope, Modifier::th};
    u32 at = 0;
    for (Modifier m : cache) {
      i_.cache = static_cast<u16>(i_.cache | modifier(m) << at);
      at += format_->modifier(m).width;
    }
    if (modifier(Modifier::gds)) fail("global data share is not emulated");
    if (modifier(Modifier::tfe)) fail("texture fail enable is not emulated");
  }

  static i32 sign_extend(u32 x, u32 width) {
    return static_cast<i32>(x << (32 - width)) >> (32 - width);
  }

  bool contains_letter(char letter) const {
    for (const char* s = op_->signature; *s != 0; ++s) {
      if (s[0] == letter && (s == op_->signature || s[-1] == ' ')) return true;
    }
    return false;
  }

  // SDWA and DPP take the place of the first source.
  void escapes() {
    if (!is_vop() || !contains_letter('a')) return;
    const u32 src0 = field('a');
    const bool vop12c = format_->id == VOP1 || format_->id == VOP2 || format_->id == VOPC;
    if (generation_ <= Generation::Gfx10) {
      if (!vop12c) return;
      if (src0 == kSdwa) sdwa(extra_word("its SDWA word"));
    }
    if (src0 == kDpp) dpp(extra_word("its DPP word"));
    if (generation_ != Generation::Gfx9 && (src0 == kDpp8 || src0 == kDpp8Fi)) {
      const u32 w = extra_word("its DPP8 word");
      i_.dpp8 = true;
      i_.fetch_inactive = src0 == kDpp8Fi;
      i_.dpp8_lanes = w >> 8;
      replaced_ = static_cast<i32>(256 + (w & 255));
    }
  }

  void sdwa(u32 w) {
    i_.sdwa = true;
    replaced_ = static_cast<i32>((w & 255) + (w >> 23 & 1 ? 0 : 256));
    if (format_->id == VOPC) {
      sdwa_result_ = w >> 15 & 1 ? static_cast<i32>(w >> 8 & 127) : kVcc;
    } else {
      i_.dst_sel = w >> 8 & 7;
      i_.dst_unused = w >> 11 & 3;
      i_.clamp = (w >> 13 & 1) != 0;
      i_.omod = w >> 14 & 3;
    }
    i_.src0_sel = w >> 16 & 7;
    i_.src1_sel = w >> 24 & 7;
    const bool two = format_->id != VOP1;
    if (i_.dst_sel == 7 || i_.dst_unused == 3 || i_.src0_sel == 7 || (two && i_.src1_sel == 7)) fail("SDWA with a reserved selector");
    sext_[0] = w >> 19 & 1;
    neg_[0] = w >> 20 & 1;
    abs_[0] = w >> 21 & 1;
    sext_[1] = w >> 27 & 1;
    neg_[1] = w >> 28 & 1;
    abs_[1] = w >> 29 & 1;
    sdwa_scalar_ = w >> 31 & 1;
  }

  void dpp(u32 w) {
    i_.dpp = true;
    replaced_ = static_cast<i32>(256 + (w & 255));
    i_.dpp_ctrl = w >> 8 & 0x1ff;
    i_.fetch_inactive = generation_ != Generation::Gfx9 && (w >> 18 & 1);
    i_.bound_ctrl = (w >> 19 & 1) != 0;
    if (format_->id != VOP3 && format_->id != VOP3P) {
      neg_[0] = w >> 20 & 1;
      abs_[0] = w >> 21 & 1;
      neg_[1] = w >> 22 & 1;
      abs_[1] = w >> 23 & 1;
    }
    i_.bank_mask = w >> 24 & 15;
    i_.row_mask = w >> 28 & 15;
    if (!is_dpp_control(generation_, i_.dpp_ctrl)) fail("DPP with the reserved control " + std::to_string(i_.dpp_ctrl));
  }

  // The operands of v_mfma_ld_scale_b32, and which of their bytes are taken.
  void scales(const u32* prefix) {
    if (!contains(op_->name, "_f8f6f4")) fail("scales ahead of '" + std::string(op_->name) + "'");
    static const Opcode small = {VOP3P, 45, "v_mfma_scale_f32_16x16x128_f8f6f4", "", 4};
    static const Opcode large = {VOP3P, 46, "v_mfma_scale_f32_32x32x64_f8f6f4", "", 4};
    i_.opcode = contains(op_->name, "16x16x128") ? &small : &large;
    i_.scale_opsel = prefix[0] >> 11 & 3;
    i_.scale_opselhi = prefix[1] >> 27 & 3;
    for (int k = 0; k < 2; ++k) {
      const u32 code = prefix[1] >> 9 * k & 0x1ff;
      Operand o = code >= 256 ? vector(code - 256, 1, false) : scalar(code, 1);
      o.letter = k ? 'y' : 'x';
      i_.o[i_.count++] = o;
    }
  }

  Operand constant(u32 value) const {
    Operand o;
    o.kind = Operand::Kind::Constant;
    o.bits = value;
    o.bits16 = static_cast<u16>(value);
    o.bits64 = static_cast<u64>(static_cast<i64>(static_cast<i32>(value)));
    return o;
  }

  Operand literal() {
    if (!has_literal_) {
      literal_ = extra_word("its literal");
      has_literal_ = true;
    }
    Operand o = constant(literal_);
    o.literal = true;
    if (contains(op_->name, "f64")) {
      o.bits64 = u64{literal_} << 32;
    } else if (!contains(op_->name, "i64")) {
      o.bits64 = literal_;
    }
    return o;
  }

  Operand scalar_register(u32 index, u8 size) const {
    Operand o;
    o.kind = Operand::Kind::Scalar;
    o.size = size;
    o.index = static_cast<u16>(index);
    return o;
  }

  Operand scalar(u32 code, u8 size) {
    if (generation_ != Generation::Gfx9) {
      const bool gfx10 = generation_ == Generation::Gfx10;
      if (code == (gfx10 ? 125u : 124u)) return scalar_register(kNull, size);
      if (code == (gfx10 ? 124u : 125u)) return scalar_register(kM0, size);
    }
    if (code <= 124 || code == 126 || code == 127) return scalar_register(code, size);
    if (code >= 128 && code <= 192) return constant(code - 128);
    if (code >= 193 && code <= 208) return constant(192 - code);
    if (code >= 240 && code <= 248) {
      const FloatConstant& f = kFloats[code - 240];
      Operand o = constant(f.f32);
      o.bits16 = f.f16;
      o.bits64 = f.f64;
      return o;
    }
    if (code == 253) return scalar_register(kScc, 1);
    if (code >= kSharedBase && code <= kPrivateLimit) {
      if (size != 2) fail("scalar operand " + std::to_string(code) + " in 32 bits is not emulated");
      return scalar_register(code, 2);
    }
    if (code == kLiteral) return literal();
    fail("scalar operand " + std::to_string(code) + " is not emulated");
  }

  Operand vector(u32 index, u8 size, bool acc) const {
    Operand o;
    o.kind = Operand::Kind::Vector;
    o.size = size;
    o.index = static_cast<u16>(index + (acc ? kAccBase : 0));
    if (index + size > 256) throw Error("a register past v255");
    return o;
  }

  static u8 size_of(char c) {
    if (c >= '0' && c <= '9') return static_cast<u8>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<u8>(c - 'a' + 10);
    return c == 'g' ? 16 : c == 'w' ? 32 : 1;
  }

  // Bit of op_sel that says which half of an operand is meant.
  static u8 half_bit(char letter) { return letter == 'd' ? 8 : letter == 'a' ? 1 : letter == 'b' ? 2 : 4; }

  void operands() {
    const char* s = op_->signature;
    while (*s != 0) {
      if (*s == ' ') {
        ++s;
        continue;
      }
      const char letter = *s++;
      const char size = *s != 0 && *s != ' ' ? *s++ : '1';
      char mark = 0;
      while (*s != 0 && *s != ' ') mark = *s++;
      if (i_.count == kMaxOperands) fail("too many operands");
      Operand o = operand(letter, size, mark);
      o.letter = letter;
      i_.o[i_.count++] = o;
    }
    if (i_.sdwa && format_->id == VOPC && i_.o[0].letter == 'C') i_.o[0].index = static_cast<u16>(sdwa_result_);
  }

  // Elements of 6 and 4 bits take fewer registers than those of 8.
  u8 size_of_factor(char letter) const {
    static const u8 sizes[] = {8, 8, 6, 6, 4, 8, 8, 8};
    return sizes[modifier(letter == 'a' ? Modifier::neghi : Modifier::neglo) & 7];
  }

  Operand operand(char letter, char size_mark, char mark) {
    const bool factor = (letter == 'a' || letter == 'b') && contains(op_->name, "_f8f6f4");
    const u8 size = factor ? size_of_factor(letter) : size_of(size_mark);
    if (letter == 'C') return scalar_register(kVcc, wave32_ ? 1 : 2);
    if (letter == 'K') return literal();
    const Field* f = format_->field(letter);
    if (f == nullptr) fail(std::string("the table names a field '") + letter + "' that the format lacks");
    u32 value = bits(f->bit, f->width);
    if (format_->id == VOPDY && letter == 'd') {
      value = (bits(49, 7) << 1) | (~bits(56, 8) & 1);
    }
    switch (f->kind) {
      case FieldKind::Immediate: return constant(value);
      case FieldKind::Pair: return scalar_register(value * 2, size);
      case FieldKind::Quad: return scalar_register(value * 4, size);
      case FieldKind::Scalar: {
        if (size == 0) return {};
        return scalar(value, mask_size(letter, size));
      }
      case FieldKind::Vgpr:
        if (size == 0) return {};
        if (mark == 'S') return scalar(value & 0x7f, mask_size(letter, size));
        if (letter == 'b' && i_.sdwa) {
          Operand o = sdwa_scalar_ ? scalar(value, size) : vector(value, size, false);
          source_modifiers(o, 1);
          return o;
        }
        if (size_mark == 'h' && format_->id != VOP3 && format_->id != VOP3P) {
          Operand o = vector(value & 0x7f, 1, false);
          o.half = value >> 7 ? 2 : 1;
          if (value >> 7) i_.opsel = static_cast<u8>(i_.opsel | half_bit(letter));
          source_modifiers(o, position(letter));
          return o;
        }
        {
          Operand o = vector(value, size, register_is_acc(letter, mark));
          if (size_mark == 'h') o.half = i_.opsel & half_bit(letter) ? 2 : 1;
          source_modifiers(o, position(letter));
          return o;
        }
      case FieldKind::Source: {
        if (letter == 'a' && replaced_ >= 0) value = static_cast<u32>(replaced_);
        Operand o;
        if (value >= 256) {
          u32 index = value - 256;
          const bool short_form = format_->id != VOP3 && format_->id != VOP3P;
          if (size_mark == 'h' && short_form) {
            o = vector(index & 0x7f, 1, false);
            o.half = index >> 7 ? 2 : 1;
            if (index >> 7) i_.opsel = static_cast<u8>(i_.opsel | half_bit(letter));
          } else {
            o = vector(index, size, register_is_acc(letter, mark));
            if (size_mark == 'h') o.half = i_.opsel & half_bit(letter) ? 2 : 1;
          }
        } else {
          o = scalar(value, mask_size(letter, size));
          if (o.kind == Operand::Kind::Constant) o.size = size;
        }
        source_modifiers(o, position(letter));
        return o;
      }
    }
    fail("an operand of an unknown kind");
  }

  // Lane masks take two registers in wave64; the tables were probed in one mode only.
  u8 mask_size(char letter, u8 size) const {
    if (generation_ == Generation::Gfx9 || wave32_ || size != 1) return size;
    const bool mask = (letter == 'd' && (starts(op_->name, "v_cmp"))) || (letter == 's' && format_->id == VOP3) ||
                      (letter == 'c' && (starts(op_->name, "v_cndmask") || contains(op_->name, "_co_ci_")));
    return mask ? 2 : size;
  }

  static int position(char letter) { return letter == 'a' ? 0 : letter == 'b' ? 1 : letter == 'c' ? 2 : -1; }

  void source_modifiers(Operand& o, int at) const {
    if (at < 0) return;
    if (format_->id == VOP3) {
      o.neg = modifier(Modifier::neg) >> at & 1;
      o.abs = !no_abs_ && (modifier(Modifier::abs) >> at & 1);
    }
    if (at < 2) {
      o.neg = o.neg || neg_[at];
      o.abs = o.abs || abs_[at];
      o.sext = sext_[at];
    }
  }

  bool register_is_acc(char letter, char mark) const {
    if (generation_ != Generation::Gfx9) return false;
    if (starts(op_->name, "v_accvgpr")) {
      const bool both = starts(op_->name, "v_accvgpr_mov");
      return both || (letter == 'd') == starts(op_->name, "v_accvgpr_write");
    }
    if (is_matrix()) {
      if (letter == 'd' || (letter == 'c' && !starts(op_->name, "v_smfmac"))) return i_.clamp;
      const u32 acc = modifier(Modifier::opselhi);
      return letter == 'a' ? acc & 1 : letter == 'b' ? acc >> 1 & 1 : false;
    }
    (void)mark;
    if (is_memory() && letter != 'a') return modifier(Modifier::acc) != 0;
    return false;
  }

  Operand* find(char letter) {
    for (u8 k = 0; k < i_.count; ++k) {
      if (i_.o[k].letter == letter) return &i_.o[k];
    }
    return nullptr;
  }

  void drop(char letter) {
    u8 kept = 0;
    for (u8 k = 0; k < i_.count; ++k) {
      if (i_.o[k].letter != letter) i_.o[kept++] = i_.o[k];
    }
    i_.count = kept;
  }

  // Operands whose presence or size other bits decide.
  void memory_operands() {
    const bool gfx9 = generation_ == Generation::Gfx9;
    const bool atomic = contains(op_->name, "atomic");
    if (format_->id == SMEM) {
      if (Operand* o = find('o')) {
        Operand made;
        const bool has_offset = gfx9 ? modifier(Modifier::soff) || !modifier(Modifier::imm) : true;
        if (gfx9 && !modifier(Modifier::imm) && !modifier(Modifier::soff)) {
          made = scalar(static_cast<u32>(i_.offset) & 127, 1);  // the offset field names a register
          i_.offset = 0;
        } else if (has_offset) {
          made = scalar(field('o'), 1);
        }
        if (made.kind == Operand::Kind::Scalar && made.index == kNull) made = {};
        made.letter = 'o';
        *o = made;
      }
      return;
    }
    if (format_->id == MUBUF) {
      if (Operand* a = find('a')) {
        if (i_.offen || i_.idxen) {
          *a = vector(field('a'), static_cast<u8>(i_.offen + i_.idxen), false);
          a->letter = 'a';
        }
      }
      if (i_.lds) {
        Operand* d = find('d');
        if (d != nullptr) {
          const u8 size = d->size;
          *d = {};
          d->letter = 'd';
          d->size = size;
        }
      }
      if (atomic && !i_.returns) return;
      return;
    }
    if (format_->id == FLAT || format_->id == GLOBAL || format_->id == SCRATCH) {
      if (atomic && !i_.returns) drop('d');
      if (atomic && i_.returns) returned();
      const u32 saddr = field('s');
      const bool gfx10 = generation_ == Generation::Gfx10;
      const bool off = gfx10 ? saddr == 0x7d || saddr == 0x7f : saddr == (gfx9 ? 0x7f : 0x7c);
      Operand* a = find('a');
      Operand* s = find('s');
      if (format_->id == GLOBAL && s != nullptr && !off) {
        *s = scalar(saddr, 2);
        s->letter = 's';
        if (a != nullptr) a->size = 1;
      }
      if (format_->id == SCRATCH && s != nullptr) {
        bool has_vector = modifier(Modifier::sve) != 0;
        if (arch_.name == "gfx90a") has_vector = off;
        if (gfx10) has_vector = saddr == 0x7d;  // 0x7f: neither register
        if (!off) *s = scalar(saddr, 1);
        s->letter = 's';
        if (a != nullptr && !has_vector) *a = {};
        if (a != nullptr) a->letter = 'a';
      }
    }
  }

  // The register of an atomic's old value: as wide as what is in memory. cmpswap's data are two.
  void returned() {
    const Operand* x = find('x');
    if (x == nullptr || find('d') != nullptr || i_.count == kMaxOperands) return;
    const u8 size = static_cast<u8>(contains(op_->name, "cmpswap") ? x->size / 2 : x->size);
    for (u8 k = i_.count; k > 0; --k) i_.o[k] = i_.o[k - 1];
    i_.o[0] = vector(field('d'), size, modifier(Modifier::acc) != 0);
    i_.o[0].letter = 'd';
    ++i_.count;
  }

  // Which operands are read and which are written.
  void access() {
    const char* n = op_->name;
    const bool store = contains(n, "_store") || (format_->id == DS && contains(n, "_write"));
    const bool atomic = contains(n, "atomic");
    for (u8 k = 0; k < i_.count; ++k) {
      const Operand& o = i_.o[k];
      bool result = o.letter == 'd' && !store && !(format_->id == SOPK && starts(n, "s_cmpk"));
      bool source = !result;
      if (o.letter == 'C') result = k < 2 && i_.count > k + 1 && (format_->id == VOPC || contains(n, "_co_") || k == 0);
      if (o.letter == 's' && format_->id == VOP3) result = true;
      if (o.letter == 'C' || (o.letter == 's' && format_->id == VOP3)) source = !result;
      if (format_->id == MUBUF && atomic && o.letter == 'd') {
        source = true;
        result = i_.returns;
      }
      if (format_->id == SOPK && o.letter == 'd' && (starts(n, "s_setreg") || starts(n, "s_cmpk"))) {
        result = false;
        source = true;
      }
      if (o.letter == 'd' && result && reads_result(n)) source = true;
      if (o.letter == 'a' && starts(n, "v_swap")) result = true;
      if (o.letter == 'a' && contains(n, "permlane") && contains(n, "_swap")) result = true;
      if (source) i_.sources = static_cast<u8>(i_.sources | 1 << k);
      if (result) i_.results = static_cast<u8>(i_.results | 1 << k);
    }
  }

  bool reads_result(const char* n) const {
    if (format_->id == SOPK) return starts(n, "s_addk") || starts(n, "s_mulk");
    return starts(n, "v_fmac") || starts(n, "v_mac_") || starts(n, "v_dual_fmac") || starts(n, "v_dual_dot2acc") ||
           starts(n, "v_pk_fmac") || contains(n, "dot2c_") || contains(n, "dot4c_") || contains(n, "dot8c_") ||
           starts(n, "v_smfmac") || starts(n, "v_swmmac") || starts(n, "v_swap") || (contains(n, "permlane") && contains(n, "_swap"));
  }

  Generation generation_;
  const Architecture& arch_;
  bool wave32_;
  const u32* words_;
  std::size_t count_;
  const Format* format_ = nullptr;
  const Opcode* op_ = nullptr;
  u8 used_ = 0;
  i32 replaced_ = -1, sdwa_result_ = kVcc;
  bool neg_[2] = {}, abs_[2] = {}, sext_[2] = {}, sdwa_scalar_ = false, no_abs_ = false;
  bool has_literal_ = false;
  u32 literal_ = 0;
  Instruction i_;
};

}  // namespace

Decoded decode(const Architecture& arch, bool wave32, const u32* words, std::size_t count) {
  Decoded d;
  d.first = Decoder(arch, wave32, words, count).run();
  if (std::string_view(d.first.form) == "VOPDX") {
    d.dual = true;
    d.second = Decoder(arch, wave32, words, count).run(VOPDX);
    d.first.size = d.second.size = std::max(d.first.size, d.second.size);
    for (u8 k = 0; k < d.first.size / 4; ++k) d.first.words[k] = d.second.words[k] = words[k];  // a literal of either
  }
  return d;
}

}  // namespace mgx
