/** What the built-in tools hint to people and models about themselves (MCP tool annotations): all four, always. */
import type { ToolAnnotations } from '../tool.ts';

export const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/** Adds or changes something that can be put right again. */
export const ADDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};

/** The same, and a second call changes nothing more. */
export const SETS: ToolAnnotations = { ...ADDS, idempotentHint: true };

/** Moves money, which nobody gives back. */
export const SPENDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: false,
};

/** Takes something away or ends it; a second call changes nothing more. */
export const ENDS: ToolAnnotations = { ...SPENDS, idempotentHint: true };
