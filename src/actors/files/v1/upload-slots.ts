/**
 * Slots of v1 uploads, one instance for the server (spec 2.7): how many are active, whose, under which CRC-32. One
 * turn decides all three and writes the index of checksums. Messages grant and free a slot, so that no crash loses
 * it.
 */

import type { ErrorName } from '../../../domain/errors.ts';
import { fileNameFault, fileSizeMaxBytes, UPLOAD_SESSIONS_MAX } from '../../../domain/files/files.ts';
import { BOUNDS, limitsOf, networkLimit } from '../../../domain/limits/bounds.ts';
import type { Network } from '../../../domain/limits/networks.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import {
  type Answer,
  type Claim,
  defineActor,
  Later,
  type Message,
  type Outcome,
  type Refusal,
  refuse,
  type Turn,
} from '../../runtime/actor.ts';
import { messageTo, type Protocol, receiver } from '../../runtime/protocol.ts';
import { type OpenUpload, UPLOAD } from './upload-messages.ts';
import type { UploadFacts } from './upload-state.ts';

export const UPLOAD_SLOTS = receiver<UploadSlotsCommand>('uploadDesk');

const FULL_SHARE = 'too many uploads of one network at the same time';

/** The one instance. */
export const UPLOAD_SLOTS_ID = 'all';

export interface GrantUpload extends Omit<UploadFacts, 'uploadKey'> {
  readonly type: 'grantUpload';
  readonly userId: string;
  /** Networks whose share of the slots the upload takes; none: no network's. */
  readonly networks?: readonly Network[];
}

/** Sent by the uploader's actor: the upload is open, or `error` says why it is not. */
export interface UploadPrepared {
  readonly type: 'uploadPrepared';
  readonly uploadKey: string;
  readonly asker: string;
  readonly error: ErrorName | null;
}

/** Sent by the uploader's actor, and at a start: the upload has ended. Answered with `slotFreed`. */
export interface FreeSlot {
  readonly type: 'freeSlot';
  readonly uploadKey: string;
  readonly userId: string;
}

type UploadSlotsCommand = GrantUpload | UploadPrepared | FreeSlot;

/** `slots`: all of them. `stale`: those that were given long enough ago to have expired by now. */
type UploadSlotsQuery = { readonly type: 'slots' } | { readonly type: 'stale' };

export interface UploadSlot {
  readonly uploadKey: string;
  readonly userId: string;
  /** The declared CRC-32, unsigned. */
  readonly uploadId: number;
  readonly grantedMs: number;
  /** Names of the networks whose share it takes. */
  readonly networks?: readonly string[];
}

interface UploadSlotsState {
  /** Slots, at most `UPLOAD_SESSIONS_MAX`. */
  readonly slots: readonly UploadSlot[];
}

type UploadSlotsEvent =
  | { readonly type: 'slotGranted'; readonly slot: UploadSlot }
  | { readonly type: 'slotFreed'; readonly uploadKey: string };

type UploadSlotsProtocol = Protocol<
  UploadSlotsCommand,
  { readonly grantUpload: number; readonly freeSlot: null },
  UploadSlotsQuery,
  { readonly slots: readonly UploadSlot[]; readonly stale: readonly UploadSlot[] }
>;

export const uploadSlots = defineActor<UploadSlotsState, UploadSlotsProtocol, UploadSlotsEvent>({
  kind: UPLOAD_SLOTS,
  version: 1,
  limits: { mailbox: 256, snapshotEvery: 200, idleMs: 600_000 },
  initial: () => ({ slots: [] }),
  evolve({ slots }, event) {
    if (event.type === 'slotGranted') return { slots: [...slots, event.slot] };
    return { slots: slots.filter(({ uploadKey }) => uploadKey !== event.uploadKey) };
  },
  decide: { grantUpload: grant, uploadPrepared: prepared, freeSlot: free },
  query: {
    slots: ({ slots }) => slots,
    stale({ slots }, _query, _volatile, { nowMs, settings }) {
      const inactivityMs = settings.get('UploadInactivitySeconds') * SECOND_MS;
      return slots.filter(({ grantedMs }) => nowMs >= grantedMs + inactivityMs);
    },
  },
});

/** Checks in the order of refusals: 1309, 1301, 1302, 1303, 1304; then the uploader's actor asks the module (1310). */
function grant(
  { slots }: UploadSlotsState,
  command: GrantUpload,
  turn: Turn,
): Outcome<UploadSlotsEvent, number> | Refusal {
  const { type: _type, userId, networks = [], ...facts } = command;
  const fault = fileNameFault(facts.name, turn.settings.get('FileBlockedExtensions'));
  if (fault !== undefined) return refuse('InvalidFileName', fault);
  if (facts.sizeBytes < 1) return refuse('EmptyFile');
  if (facts.sizeBytes > fileSizeMaxBytes(turn.settings)) return refuse('MaxFileSize');
  if (slots.some((slot) => slot.userId === userId)) return refuse('AlreadyDownload');
  if (slots.length >= UPLOAD_SESSIONS_MAX) return refuse('TooManyDownloads');
  if (networks.some((network) => hasItsShare(slots, network, turn)))
    return refuse('TooManyDownloads', FULL_SHARE);
  if (slots.some((slot) => slot.uploadId === facts.uploadId)) return refuse('CRC32AlreadyUsed');
  const { uploadId } = facts;
  const slot: UploadSlot = {
    uploadKey: turn.newId(),
    userId,
    uploadId,
    grantedMs: turn.nowMs,
    ...(networks.length === 0 ? {} : { networks: networks.map(({ name }) => name) }),
  };
  const claim: Claim = {
    index: 'crc32',
    key: String(uploadId),
    owner: userId,
    onConflict: 'CRC32AlreadyUsed',
  };
  const open: OpenUpload = { type: 'openUpload', ...facts, uploadKey: slot.uploadKey, asker: turn.commandId };
  return {
    events: [{ type: 'slotGranted', slot }],
    claims: [claim],
    send: [messageTo(UPLOAD, userId, open)],
    reply: new Later(turn.commandId),
  };
}

/** Slots outlive a process, so what a network holds of them follows from the slots themselves. */
function hasItsShare(slots: readonly UploadSlot[], { name, shares }: Network, turn: Turn): boolean {
  const held = slots.filter((slot) => slot.networks?.includes(name)).length;
  return held >= networkLimit(limitsOf(BOUNDS.uploadSlots, turn.settings), shares);
}

function prepared(
  { slots }: UploadSlotsState,
  { uploadKey, asker, error }: UploadPrepared,
): Outcome<UploadSlotsEvent, null, never, number | null> {
  const slot = slots.find((one) => one.uploadKey === uploadKey);
  if (error === null) return { answers: [{ commandId: asker, reply: slot?.uploadId ?? null }] };
  const answers: Answer[] = [{ commandId: asker, refusal: { refuse: error } }];
  return { ...(slot === undefined ? {} : freed(slot)), answers };
}

/** The uploader's actor is notified every time, also when the message is delivered twice. */
function free({ slots }: UploadSlotsState, { uploadKey, userId }: FreeSlot): Outcome<UploadSlotsEvent, null> {
  const slot = slots.find((one) => one.uploadKey === uploadKey);
  const send: Message[] = [messageTo(UPLOAD, userId, { type: 'slotFreed', uploadKey })];
  return { ...(slot === undefined ? {} : freed(slot)), send };
}

function freed({ uploadKey, uploadId, userId }: UploadSlot): Outcome<UploadSlotsEvent, null> {
  const claim: Claim = {
    index: 'crc32',
    key: String(uploadId),
    owner: null,
    replaces: userId,
    onConflict: 'CRC32AlreadyUsed',
  };
  return { events: [{ type: 'slotFreed', uploadKey }], claims: [claim] };
}
