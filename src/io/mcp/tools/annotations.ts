/** MCP tool annotations of the built-in tools; each tool has all four hints. */
import type { ToolAnnotations } from '../tool.ts';

export const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/** Adds or changes something that can be undone. */
export const ADDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};

/** The same, and a repeated call changes nothing more. */
export const SETS: ToolAnnotations = { ...ADDS, idempotentHint: true };

/** Moves money irrevocably. */
export const SPENDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: false,
};

/** Removes or ends something; a repeated call changes nothing more. */
export const ENDS: ToolAnnotations = { ...SPENDS, idempotentHint: true };
