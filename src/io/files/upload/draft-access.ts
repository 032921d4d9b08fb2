/**
 * Access to drafts: the fields of create_draft, the slot of the owner for a new draft, and the check that a draft belongs
 * to its caller (spec 4.7).
 */

import { type DraftView, draft, type OpenDraft, type OpenedDraft } from '../../../actors/files/v2/draft.ts';
import { type FinishedUpload, isSlotOf, slotIdOf } from '../../../actors/files/v2/draft-state.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { ID_MAX, ID_MIN, parseId } from '../../../domain/ids.ts';
import { keepNewest } from '../../../domain/limits/newest.ts';
import { integer, object, optional, type Static, text, union } from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import { askOptions } from '../../accounts/account.ts';
import type { RouteContext } from '../../http/table/route.ts';

/** Longest form of a declared checksum that the chat module keeps (docs/modules.md "Files"). */
const DECLARED_CHARACTERS_MAX = 128;

/** All optional: the draft answers missing and wrong values with the file codes, in their order. */
export const draftQuery = object({
  fileName: optional(text({ examples: ['notes.txt'] })),
  fileSize: optional(text({ description: 'Bytes', examples: ['5'] })),
  chatId: optional(text({ description: '0 and less: the personal storage', examples: ['0'] })),
  message: optional(text({ examples: ['The minutes of today'] })),
  linkedMessageId: optional(text({ description: 'The message that this one answers', examples: ['0'] })),
  crc32: optional(
    text({ maxLength: 65_536, description: 'Kept with the message as it is', examples: ['907060870'] }),
  ),
});

const number = integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER });

/** The same fields, for names and messages that are too long for a query. */
export const draftBody = object({
  fileName: optional(text({ examples: ['notes.txt'] })),
  fileSize: optional(union([number, text()], { description: 'Bytes', examples: [5] })),
  chatId: optional(
    union([number, text()], { description: '0 and less: the personal storage', examples: ['0'] }),
  ),
  message: optional(text({ examples: ['The minutes of today'] })),
  linkedMessageId: optional(union([number, text()], { examples: ['0'] })),
  crc32: optional(union([number, text({ maxLength: 65_536 })], { examples: ['907060870'] })),
});

type Fields = Readonly<Record<keyof Static<typeof draftBody>, string | undefined>>;

export interface DraftSlot {
  readonly slot: string;
  readonly ownerId: string;
  readonly fileId: string;
}

type Uploader = Pick<SessionContext, 'loginType' | 'userId'>;

interface UploadCall extends Pick<RouteContext<unknown, unknown, unknown>, 'actors' | 'settings' | 'nowMs'> {
  readonly session: Uploader;
}

interface DraftCall {
  readonly session: Uploader;
  readonly query: Static<typeof draftQuery>;
  readonly body: Static<typeof draftBody>;
  readonly idempotencyKey: string | undefined;
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
}

/** Owners whose last slot is known. One that is forgotten begins again with a search of all slots. */
const ROTATIONS_MAX = 10_000;

/**
 * The slot that each owner used last, on this node alone. The next slot in turn is free as a rule, or remembers the oldest
 * upload, so a new draft is found without asking every slot.
 */
export class SlotRotation {
  readonly #last = new Map<string, number>();

  /** Index of the next slot in turn; undefined for an owner that is not known. */
  next(ownerId: string, slots: number): number | undefined {
    const last = this.#last.get(ownerId);
    return last === undefined ? undefined : (last + 1) % slots;
  }

  use(ownerId: string, index: number): void {
    keepNewest(this.#last, ROTATIONS_MAX, ownerId, index);
  }
}

/** Throws `Forbidden`, `InvalidInput`, `TooManyDrafts`, and what the draft refuses: 1309, 1301, 1013, 1312, 1103, 1310. */
export async function openDraft(call: DraftCall, rotation: SlotRotation): Promise<OpenedDraft> {
  const ownerId = ownerOf(call.session);
  const command = readCommand(ownerId, mergeFields(call.query, call.body));
  const { actors } = call;
  const options = askOptions('create_draft', { idempotencyKey: call.idempotencyKey, body: command });
  const slots = slotsOf(ownerId, call.settings);
  const { idempotencyKey: key } = options;
  const ask = (slot: string) => actors.ask(draft, slot, command, options);
  if (key !== undefined) {
    for (const slot of slots) {
      const first = (await actors.remembers(draft, slot, key)) ? await ask(slot) : null;
      if (first !== null) return first;
    }
  }
  const next = rotation.next(ownerId, slots.length);
  const inTurn = [...slots.keys()].map((index) => (index + (next ?? 0)) % slots.length);
  for (const forgets of [false, true]) {
    for (const index of inTurn) {
      const slot = slots[index] ?? '';
      if (!(await actors.query(draft, slot, { type: 'isFree', forgets }))) continue;
      // Null where another request has taken the slot meanwhile.
      const opened = await ask(slot);
      if (opened === null) continue;
      rotation.use(ownerId, index);
      return opened;
    }
  }
  throw new GatewayError('TooManyDrafts');
}

/** The draft of a file id. Throws `InvalidID` for a foreign, unknown or finished one, without a distinction. */
export function findDraft(
  actors: ActorSystem,
  session: SessionContext,
  sentId: string | undefined,
): DraftSlot {
  const found = draftOf(actors, session, sentId);
  if (found === undefined) throw new GatewayError('InvalidID');
  return found;
}

/**
 * The draft of a file id, or the upload that became complete shortly before. Throws `InvalidID` where there is neither.
 * Where the index has none the slots are asked: the index of a node may be ahead of the owner, which still completes it.
 */
export async function findUpload(
  { actors, session, settings, nowMs }: UploadCall,
  sentId: string | undefined,
): Promise<DraftSlot | FinishedUpload> {
  const found = draftOf(actors, session, sentId);
  if (found !== undefined) return found;
  const ownerId = ownerOf(session);
  const fileId = parseId(sentId);
  if (fileId === undefined) throw new GatewayError('InvalidID');
  for (const slot of slotsOf(ownerId, settings)) {
    const target = { slot, ownerId, fileId };
    const view = await viewDraft(actors, target).catch(unlessInvalid);
    if (view === undefined) continue;
    if (!('untilMs' in view)) return target;
    if (nowMs < view.untilMs) return view;
  }
  throw new GatewayError('InvalidID');
}

function unlessInvalid(error: unknown): undefined {
  if (!(error instanceof GatewayError && error.row === 'InvalidID')) throw error;
}

function draftOf(actors: ActorSystem, session: Uploader, sentId: string | undefined): DraftSlot | undefined {
  const ownerId = ownerOf(session);
  const fileId = parseId(sentId);
  const slot = fileId === undefined ? undefined : actors.lookup('draft', fileId);
  if (fileId === undefined || slot === undefined || !isSlotOf(slot, ownerId)) return undefined;
  return { slot, ownerId, fileId };
}

function slotsOf(ownerId: string, settings: SettingsReader): string[] {
  return Array.from({ length: settings.get('DraftsPerUser') }, (_, index) => slotIdOf(ownerId, index));
}

/** Complete where it became so since it was found. Rejects with `InvalidID` when it has ended without a file. */
export async function viewDraft(
  actors: ActorSystem,
  { slot, ownerId, fileId }: DraftSlot,
): Promise<DraftView | FinishedUpload> {
  return await actors.query(draft, slot, { type: 'draft', ownerId, fileId });
}

/** McpBasic has proven no key, and McpApp reaches only what has `appScope` (spec 5.1): neither may upload. */
function ownerOf({ loginType, userId }: Uploader): string {
  if (loginType === 'McpBasic' || loginType === 'McpApp') throw new GatewayError('Forbidden');
  return userId;
}

/** A field may be in the query, in the body, or in both with the same value. */
function mergeFields(query: DraftCall['query'], body: DraftCall['body']): Fields {
  const merge = (name: keyof Fields): string | undefined => {
    const [inQuery, inBody] = [query[name], body[name]];
    const both = inQuery !== undefined && inBody !== undefined;
    if (both && inQuery !== String(inBody)) {
      throw new GatewayError('InvalidInput', `${name}: query and body differ`);
    }
    const value = inQuery ?? inBody;
    return value === undefined || value === '' ? undefined : String(value);
  };
  return {
    fileName: merge('fileName'),
    fileSize: merge('fileSize'),
    chatId: merge('chatId'),
    message: merge('message'),
    linkedMessageId: merge('linkedMessageId'),
    crc32: merge('crc32'),
  };
}

function readCommand(ownerId: string, fields: Fields): OpenDraft {
  return {
    type: 'openDraft',
    ownerId,
    name: fields.fileName ?? '',
    sizeBytes: readSize(fields.fileSize),
    chatId: readChat(fields.chatId),
    message: fields.message ?? null,
    linkedMessageId: readLinked(fields.linkedMessageId),
    // A longer text is no checksum; it is cut and never refused (spec 4.7).
    declaredCrc32: fields.crc32?.slice(0, DECLARED_CHARACTERS_MAX) ?? null,
  };
}

/** Any whole number; the draft checks it. A number that is not exact is too large for any file. */
function readSize(sent: string | undefined): number | null {
  if (sent === undefined) return null;
  if (!/^-?[0-9]{1,40}$/.test(sent))
    throw new GatewayError('InvalidInput', 'fileSize: expected a whole number');
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number(sent), Number.MAX_SAFE_INTEGER));
}

/** Null, the personal storage, for 0 and less (spec 4.7 rule 1). */
function readChat(sent: string | undefined): string | null {
  const id = readInt64(sent, 'chatId');
  return id === null || id <= 0n ? null : String(id);
}

function readLinked(sent: string | undefined): string | null {
  const id = readInt64(sent, 'linkedMessageId');
  if (id !== null && id < 0n) throw new GatewayError('InvalidInput', 'linkedMessageId: expected an id');
  return id === null || id === 0n ? null : String(id);
}

function readInt64(sent: string | undefined, field: string): bigint | null {
  if (sent === undefined) return null;
  const value = /^-?[0-9]{1,19}$/.test(sent) ? BigInt(sent) : undefined;
  if (value === undefined || value < ID_MIN || value > ID_MAX) {
    throw new GatewayError('InvalidInput', `${field}: expected a 64-bit integer`);
  }
  return value;
}
