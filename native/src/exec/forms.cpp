// Refuses what a handler would overlook: forms and operands that it does not say it heeds.
#include <algorithm>
#include <string_view>

#include "exec/registry.h"

namespace mgx {
namespace {

bool is_source(char letter) { return std::string_view("abcKkC").find(letter) != std::string_view::npos; }

bool fits(const Instruction& i, std::string_view pattern) {
  if (pattern.size() != i.count) return false;
  for (u8 k = 0; k < i.count; ++k) {
    const Operand& o = i.o[k];
    const bool result = i.results >> k & 1;
    if (pattern[k] == '.' ? !is_source(o.letter) : pattern[k] == '!' ? !result || o.kind != Operand::Kind::Scalar : pattern[k] != o.letter) {
      return false;
    }
  }
  return true;
}

bool has_operands(const Instruction& i, std::string_view patterns) {
  if (patterns.empty()) return true;
  if (patterns[0] == '+') {
    for (char letter : patterns.substr(1)) {
      if (i.find(letter) == nullptr) return false;
    }
    return true;
  }
  for (std::size_t at = 0; at <= patterns.size();) {
    const std::size_t end = std::min(patterns.find('|', at), patterns.size());
    if (fits(i, patterns.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

// The forms that an instruction has, with the words for an error.
struct Used {
  u16 form;
  bool used;
  const char* text;
};

}  // namespace

void check_forms(const Instruction& i, const Semantics& s) {
  const std::string_view form = i.form;
  const bool packed = form == "VOP3P", memory = form == "DS" || form == "FLAT" || form == "GLOBAL" || form == "SCRATCH" || form == "MUBUF" || form == "SMEM";
  bool signs = false, sext = false, mask = false;
  const u8 sources = i.count > 0 ? static_cast<u8>(i.count - 1) : 0;
  for (u8 k = 0; k < i.count; ++k) {
    signs = signs || i.o[k].neg || i.o[k].abs;
    sext = sext || i.o[k].sext;
    const bool vector_form = form.substr(0, 3) == "VOP" && form != "VOPC";
    mask = mask || (k > 0 && vector_form && (i.results >> k & 1) && i.o[k].kind == Operand::Kind::Scalar);
  }
  const u8 all = static_cast<u8>((1 << std::min<u8>(sources, 3)) - 1);
  const Used used[] = {
      {kDpp, i.dpp || i.dpp8, "DPP"},
      {kSdwaSources, i.sdwa && (i.src0_sel != 6 || (form != "VOP1" && i.src1_sel != 6) || sext), "SDWA's parts of sources"},
      {kSdwaResult, i.sdwa && i.dst_sel != 6, "SDWA's dst_sel"},
      {kClamp, i.clamp, "clamp"},
      {kOmod, i.omod != 0, "omod"},
      {kHalves, !packed && !memory && i.opsel != 0, "op_sel"},
      {kSigns, signs, "neg or abs"},
      {kPacked, packed && (i.opsel != 0 || (i.opselhi & all) != all || i.neglo != 0 || i.neghi != 0), "op_sel, neg_lo or neg_hi"},
      {kMask, mask, "a second result"},
      {kToLds, i.lds, "lds"},
  };
  for (const Used& u : used) {
    if (u.used && (s.forms & u.form) == 0) throw Error("'" + std::string(i.name()) + "' with " + u.text + " is not emulated");
  }
  if (!has_operands(i, s.operands)) throw Error("'" + std::string(i.name()) + "' with these operands is not emulated");
}

}  // namespace mgx
