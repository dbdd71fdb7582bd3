// The printer.
#include "isa/print.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace mgx {
namespace {

std::string format(const char* pattern, long long value) {
  char text[48];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string range(const char* prefix, int first, int size) {
  if (size == 1) return prefix + std::to_string(first);
  return std::string(prefix) + "[" + std::to_string(first) + ":" + std::to_string(first + size - 1) + "]";
}

std::string scalar_name(const Operand& o) {
  if (o.index == kVcc) return o.size == 2 ? "vcc" : "vcc_lo";
  if (o.index == kVcc + 1) return "vcc_hi";
  if (o.index == kExec) return o.size == 2 ? "exec" : "exec_lo";
  if (o.index == kExec + 1) return "exec_hi";
  if (o.index == kM0) return "m0";
  if (o.index == kNull) return "null";
  if (o.index == kScc) return "src_scc";
  if (o.index == kSharedBase) return "src_shared_base";
  if (o.index == kSharedLimit) return "src_shared_limit";
  if (o.index == kPrivateBase) return "src_private_base";
  if (o.index == kPrivateLimit) return "src_private_limit";
  if (o.index >= kTtmp) return range("ttmp", o.index - kTtmp, o.size);
  return range("s", o.index, o.size);
}

std::string constant_text(const Operand& o) {
  if (o.literal) return format("0x%llx", o.bits);
  switch (o.bits) {
    case 0x3f000000: return "0.5";
    case 0xbf000000: return "-0.5";
    case 0x3f800000: return "1.0";
    case 0xbf800000: return "-1.0";
    case 0x40000000: return "2.0";
    case 0xc0000000: return "-2.0";
    case 0x40800000: return "4.0";
    case 0xc0800000: return "-4.0";
    case 0x3e22f983: return "0.15915494";
    default: return std::to_string(static_cast<i32>(o.bits));
  }
}

// A minus in front of a number would be another number.
std::string negated(const Operand& o, const std::string& text) {
  return o.kind == Operand::Kind::Constant ? "neg(" + text + ")" : "-" + text;
}

std::string operand_text(const Instruction& i, const Operand& o) {
  std::string text;
  switch (o.kind) {
    case Operand::Kind::None: return "off";
    case Operand::Kind::Vector:
      text = o.index >= kAccBase ? range("a", o.index - kAccBase, o.size) : range("v", o.index, o.size);
      if (o.half) text += o.half == 2 ? ".h" : ".l";
      break;
    case Operand::Kind::Scalar: text = scalar_name(o); break;
    case Operand::Kind::Constant:
      text = std::string_view(i.form) == "SOPK" || std::string_view(i.form) == "SOPP"
                 ? (o.literal ? constant_text(o) : format("0x%llx", o.bits & 0xffff))
                 : constant_text(o);
      break;
  }
  if (o.sext) text = "sext(" + text + ")";
  if (o.abs) text = "|" + text + "|";
  return o.neg ? negated(o, text) : text;
}

std::string bit_list(int value, int count) {
  std::string text = "[";
  for (int k = 0; k < count; ++k) text += std::string(k ? "," : "") + (value >> k & 1 ? "1" : "0");
  return text + "]";
}

std::string dpp_text(const Instruction& i) {
  const int c = i.dpp_ctrl;
  std::string text;
  if (c < 0x100) {
    text = " quad_perm:[";
    for (int k = 0; k < 4; ++k) text += (k ? "," : "") + std::to_string(c >> 2 * k & 3);
    text += "]";
  } else if (c < 0x110) {
    text = " row_shl:" + std::to_string(c & 15);
  } else if (c < 0x120) {
    text = " row_shr:" + std::to_string(c & 15);
  } else if (c < 0x130) {
    text = " row_ror:" + std::to_string(c & 15);
  } else if (c == 0x140) {
    text = " row_mirror";
  } else if (c == 0x141) {
    text = " row_half_mirror";
  } else if (c == 0x142 || c == 0x143) {
    text = c == 0x142 ? " row_bcast:15" : " row_bcast:31";
  } else if (c >= 0x150 && c < 0x160) {
    text = " row_share:" + std::to_string(c & 15);
  } else if (c >= 0x160 && c < 0x170) {
    text = " row_xmask:" + std::to_string(c & 15);
  } else {
    text = format(" wave_shift:0x%llx", c);
  }
  text += format(" row_mask:0x%llx", i.row_mask) + format(" bank_mask:0x%llx", i.bank_mask);
  if (i.bound_ctrl) text += " bound_ctrl:1";
  if (i.fetch_inactive) text += " fi:1";
  return text;
}

std::string sdwa_text(const Instruction& i) {
  static const char* const select[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD", "?"};
  static const char* const unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "?"};
  std::string text;
  if (std::string_view(i.form) != "VOPC") {
    text = std::string(" dst_sel:") + select[i.dst_sel] + " dst_unused:" + unused[i.dst_unused];
  }
  text += std::string(" src0_sel:") + select[i.src0_sel];
  if (std::string_view(i.form) != "VOP1") text += std::string(" src1_sel:") + select[i.src1_sel];
  return text;
}

bool has_two_offsets(std::string_view name) {
  return name.find("read2") != name.npos || name.find("write2") != name.npos || name.find("2addr") != name.npos ||
         name.find("wrxchg2") != name.npos;
}

std::string modifiers_text(const Instruction& i) {
  const std::string_view form = i.form, name = i.name();
  std::string text;
  if (form == "DS" && has_two_offsets(name)) {
    if (i.offset0) text += " offset0:" + std::to_string(i.offset0);
    if (i.offset1) text += " offset1:" + std::to_string(i.offset1);
  } else if (form == "SMEM") {
    // printed as an operand
  } else if (i.offset != 0) {
    text += " offset:" + std::to_string(i.offset);
  }
  if (i.offen) text += " offen";
  if (i.idxen) text += " idxen";
  if (i.lds) text += " lds";
  if (form == "VOP3P" && (i.cbsz || i.abid || i.blgp)) {
    if (i.cbsz) text += " cbsz:" + std::to_string(i.cbsz);
    if (i.abid) text += " abid:" + std::to_string(i.abid);
    if (i.blgp) text += " blgp:" + std::to_string(i.blgp);
  }
  const bool scaled = name.find("_scale_") != name.npos;
  const int sources = std::max(0, i.count - 1 - 2 * scaled);
  if (scaled && i.scale_opsel) text += " op_sel:" + bit_list(i.scale_opsel, 2);
  if (scaled && i.scale_opselhi) text += " op_sel_hi:" + bit_list(i.scale_opselhi, 2);
  if (form == "VOP3P") {
    if (i.opsel) text += " op_sel:" + bit_list(i.opsel, sources);
    const bool mix = name.find("_mix") != name.npos;
    const int usual = mix ? 0 : (1 << sources) - 1;
    if ((i.opselhi & ((1 << sources) - 1)) != usual) text += " op_sel_hi:" + bit_list(i.opselhi, sources);
    if (!mix && i.neglo) text += " neg_lo:" + bit_list(i.neglo, sources);
    if (!mix && i.neghi) text += " neg_hi:" + bit_list(i.neghi, sources);
  } else if (form == "VOP3" && i.opsel && name.find("v_permlane") != name.npos) {
    text += " op_sel:" + bit_list(i.opsel, 2);
  } else if (form == "VOP3" && i.opsel && name != "v_cndmask_b16") {
    text += " op_sel:" + bit_list((i.opsel & ((1 << sources) - 1)) | (i.opsel >> 3 & 1) << sources, sources + 1);
  }
  if (name.substr(0, 8) == "v_bitop3" && i.aux != 0) text += format(" bitop3:0x%llx", i.aux);
  if (i.clamp) text += " clamp";
  if (i.omod) text += i.omod == 1 ? " mul:2" : i.omod == 2 ? " mul:4" : " div:2";
  if (i.dpp) text += dpp_text(i);
  if (i.dpp8) {
    text += " dpp8:[";
    for (int k = 0; k < 8; ++k) text += (k ? "," : "") + std::to_string(i.dpp8_lanes >> 3 * k & 7);
    text += "]";
    if (i.fetch_inactive) text += " fi:1";
  }
  if (i.sdwa) text += sdwa_text(i);
  return text;
}

}  // namespace

std::string to_text(const Instruction& i) {
  std::string text = i.name();
  std::string operands;
  for (u8 k = 0; k < i.count; ++k) {
    const Operand& o = i.o[k];
    if (text == "s_endpgm" && o.bits == 0) continue;
    if (o.letter == 'd' && o.kind == Operand::Kind::None) continue;  // a load straight to LDS
    if (std::string_view(i.form) == "SMEM" && o.letter == 'o') {
      if (o.kind == Operand::Kind::None) {
        operands += ", " + format("0x%llx", i.offset);
      } else {
        operands += ", " + operand_text(i, o);
        if (i.offset != 0) operands += " offset:" + format("0x%llx", i.offset);
      }
      continue;
    }
    operands += ", " + operand_text(i, o);
    if (std::string_view(i.form) == "VOP3P" && std::string_view(i.name()).find("_mix") != std::string_view::npos &&
        k > 0) {
      // neg_lo is neg and neg_hi is abs for these
      std::string& t = operands;
      const std::string plain = operand_text(i, o);
      t.resize(t.size() - plain.size());
      std::string shown = i.neghi >> (k - 1) & 1 ? "|" + plain + "|" : plain;
      t += i.neglo >> (k - 1) & 1 ? negated(o, shown) : shown;
    }
  }
  if (!operands.empty()) text += " " + operands.substr(2);
  text += modifiers_text(i);
  if (i.second != nullptr) text += " :: " + to_text(*i.second);
  return text;
}

std::string words_text(const u32* words, std::size_t count) {
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text += (k ? " " : "") + format("%08llx", words[k]);
  return text;
}

}  // namespace mgx
