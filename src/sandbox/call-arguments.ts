/** Reads the arguments of a call to a sandbox module. */

import { parseId } from '../domain/ids.ts';
import { SandboxError, type SandboxErrorName } from './errors.ts';

import type { SandboxRecord } from './record-log.ts';

/** The user of a call whose endpoint needs one. */
export function callerOf(call: ModuleCall): string {
  if (call.userId === null) throw new SandboxError('Unauthorized');
  return call.userId;
}

/** A text field of the body; undefined when it is absent or null. */
export function optionalText(
  call: ModuleCall,
  field: string,
  charactersMax: number,
  refusal: SandboxErrorName = 'BadRequest',
): string | undefined {
  const value = call.body[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length <= charactersMax) return value;
  throw new SandboxError(refusal, `${field} is a text of at most ${charactersMax} characters`);
}

export function requiredText(
  call: ModuleCall,
  field: string,
  charactersMax: number,
  refusal: SandboxErrorName = 'BadRequest',
): string {
  const value = optionalText(call, field, charactersMax, refusal);
  if (value === undefined || value.trim() === '') throw new SandboxError(refusal, `${field} is required`);
  return value;
}

/** A field that the endpoint's interface has checked; null when it is absent. */
export function given<T extends string | number>(call: ModuleCall, field: string): T | null {
  return (call.body[field] ?? null) as T | null;
}

/** An int64 id, from the query for GET and the body for POST. */
export function requiredId(source: unknown, field: string): string {
  const id = parseId(source);
  if (id === undefined) throw new SandboxError('BadRequest', `${field} is a decimal id`);
  return id;
}

/** An id of the body; undefined when it is absent or null. */
export function optionalId(call: ModuleCall, field: string): string | undefined {
  const value = call.body[field];
  return value === undefined || value === null ? undefined : requiredId(value, field);
}

/** Page size: `limit` of the query between 1 and `most`. */
export function limitOf(query: ReadonlyMap<string, string>, usual: number, most: number): number {
  const text = query.get('limit');
  if (text === undefined) return usual;
  const limit = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= most) return limit;
  throw new SandboxError('BadRequest', `limit is a number from 1 to ${most}`);
}

/** The first items of a list, and the `before` of the next page: null on the last. */
export function pageOf<Item extends { readonly id: string }>(
  found: readonly Item[],
  limit: number,
): { readonly items: readonly Item[]; readonly next: string | null } {
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null };
}

/** A bound of a page, an id in the query. */
export function boundOf(call: ModuleCall, name: string): bigint | undefined {
  const value = call.query.get(name);
  return value === undefined ? undefined : BigInt(requiredId(value, name));
}

/** One request, checked for what all modules have in common. */
export interface ModuleCall {
  /** `X-Crm`; null only for endpoints that are not called for a user. */
  readonly userId: string | null;
  /** `X-Device-Guid`, which distinguishes callers that share a chat code; null without one. */
  readonly deviceGuid: string | null;
  readonly query: ReadonlyMap<string, string>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly nowMs: number;
  /** A fresh id, above all earlier ones. */
  tick(): string;
  /** Applies the record, to the module that it names, at once; the answer waits until it is on the disk. */
  commit(record: SandboxRecord): void;
}
