/**
 * One v2 upload (spec 4.7), from its pending chat message to the complete file or its removal. The bytes never enter
 * the journal. Each step after an end is a durable message to itself: a crash leaves a complete file or nothing.
 */
import { fileNameFault, fileSizeMaxBytes, mayHaveMessage } from '../../../domain/files/files.ts';
import { MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import { defineActor, type Outcome, type Refusal, refuse, type Turn } from '../../runtime/actor.ts';
import type { PendingFile, PortResult, Ports } from '../../runtime/ports.ts';
import type { Protocol } from '../../runtime/protocol.ts';
import {
  type CompleteDraft,
  completeDraft,
  DRAFT,
  type DraftCompleted,
  type DraftRemoved,
  type DropOwned,
  draftCompleted,
  draftRemoved,
  dropOwned,
  EXPIRY,
  giveUp,
  messageOf,
  type RemoveDraft,
  removeDraft,
  type UploadedFile,
} from './draft-ending.ts';
import {
  type DraftEvent,
  type DraftFacts,
  type DraftPhase,
  type DraftState,
  evolveDraft,
  type FinishedUpload,
  finishedUploadOf,
  freeSlot,
} from './draft-state.ts';
import {
  beginStream,
  completingDraftOf,
  endStream,
  finishBody,
  keepBytes,
  openDraftOf,
  prefixChecked,
  type StreamBegun,
  type StreamCommand,
} from './draft-streams.ts';

/** A draft whose pending message is not there by then has lost its caller to a crash. */
const OPENING_MS = MINUTE_MS;
/** A completion that a draft's expiry finds unfinished is pushed again after so long. */
const RETRY_INTERVAL_MS = 10 * MINUTE_MS;

export interface OpenDraft extends DraftFacts {
  readonly type: 'openDraft';
}

/** The reply to `openDraft`; null where this slot is taken. */
export interface OpenedDraft {
  readonly fileId: string;
  readonly expiresMs: number;
}

/** The owner gives the draft up. */
interface DropDraft {
  readonly type: 'dropDraft';
  readonly ownerId: string;
  readonly fileId: string;
}

interface MessageAnswered {
  readonly type: 'messageAnswered';
  readonly uploadKey: string;
  /** There may be a message. */
  readonly tried: boolean;
  readonly result: PortResult<{ readonly fileId: string }>;
}

interface ExpireDraft {
  readonly type: 'expireDraft';
  readonly uploadKey: string;
}

type DraftCommand =
  | OpenDraft
  | MessageAnswered
  | StreamCommand
  | DropDraft
  | ExpireDraft
  | CompleteDraft
  | DraftCompleted
  | RemoveDraft
  | DraftRemoved
  | DropOwned;

/** `draft`: the draft of this file and owner, open, being published or complete, else 1305. `part`: the file whose bytes a sweep has to leave alone. */
type DraftQuery =
  | IsFree
  /** Facts about this file that a free slot remembers; null when it is nothing. Nodes of earlier builds of 0.2.0 ask it. */
  | { readonly type: 'finished'; readonly ownerId: string; readonly fileId: string }
  | { readonly type: 'draft'; readonly ownerId: string; readonly fileId: string }
  | { readonly type: 'part' };

/** Is this slot free? The opening turn decides. `forgets`: also one that still answers a repeat of a complete upload. */
interface IsFree {
  readonly type: 'isFree';
  readonly forgets: boolean;
}

export interface DraftView {
  readonly phase: DraftPhase;
  readonly receivedBytes: number;
  readonly sizeBytes: number | null;
  readonly expiresMs: number;
  readonly keeps: boolean;
}

export type DraftProtocol = Protocol<
  DraftCommand,
  {
    readonly openDraft: OpenedDraft | null;
    readonly messageAnswered: OpenedDraft | null;
    readonly beginStream: StreamBegun;
    readonly prefixChecked: StreamBegun;
    readonly keepBytes: null;
    readonly finishBody: UploadedFile;
    readonly endStream: null;
    readonly dropDraft: null;
  },
  DraftQuery,
  {
    readonly finished: FinishedUpload | null;
    readonly draft: DraftView | FinishedUpload;
    readonly part: string | null;
    readonly isFree: boolean;
  }
>;

export const draft = defineActor<DraftState, DraftProtocol, DraftEvent>({
  kind: DRAFT,
  version: 1,
  limits: { mailbox: 64, snapshotEvery: 50, idleMs: 60_000 },
  initial: freeSlot,
  evolve: evolveDraft,
  decide: {
    openDraft: open,
    messageAnswered,
    beginStream,
    prefixChecked,
    keepBytes,
    finishBody,
    endStream,
    dropDraft: (state, command) =>
      openDraftOf(state, command) === undefined ? refuse('InvalidID') : { ...giveUp(state), reply: null },
    expireDraft: expire,
    completeDraft,
    draftCompleted,
    removeDraft,
    draftRemoved,
    dropOwned,
  },
  query: {
    isFree: ({ phase, finished }, { forgets }, _volatile, { nowMs }) =>
      phase === 'free' && (forgets || finished === undefined || finished.untilMs <= nowMs),
    part: (state) => state.draft?.fileId ?? null,
    finished: (state, query) => finishedUploadOf(state, query) ?? null,
    draft(state, query) {
      const found = openDraftOf(state, query) ?? completingDraftOf(state, query);
      if (found === undefined) return finishedUploadOf(state, query) ?? refuse('InvalidID');
      const { receivedBytes, sizeBytes, expiresMs, keeps } = found;
      return { phase: state.phase, receivedBytes, sizeBytes, expiresMs, keeps };
    },
  },
  frees: ({ type }) => type === 'dropDraft' || type === 'endStream',
});

/** Checks in the order of refusals: 1309, 1301, room on the disk (1013), then the module. */
function open(
  state: DraftState,
  command: OpenDraft,
  turn: Turn,
): Outcome<DraftEvent, OpenedDraft | null, ExpireDraft | MessageAnswered> | Refusal {
  const { type: _type, ...facts } = command;
  const fault = fileNameFault(facts.name, turn.settings.get('FileBlockedExtensions'));
  if (fault !== undefined) return refuse('InvalidFileName', fault);
  if (facts.sizeBytes !== null && facts.sizeBytes < 1) return refuse('EmptyFile');
  if ((facts.sizeBytes ?? 0) > fileSizeMaxBytes(turn.settings)) return refuse('MaxFileSize');
  if (state.phase !== 'free') return { reply: null };
  const uploadKey = `draft-${turn.newId()}`;
  const expiresMs = turn.nowMs + OPENING_MS;
  return {
    events: [{ type: 'draftOpened', facts, uploadKey, expiresMs }],
    timers: [{ name: EXPIRY, dueMs: expiresMs, command: { type: 'expireDraft', uploadKey } }],
    next: async (ports) => ({
      type: 'messageAnswered',
      uploadKey,
      ...(await askModule(ports, pendingFile(facts, uploadKey))),
    }),
  };
}

/** A draft holds no room until its bytes come: it would keep others out for as long as it lives. */
async function askModule(
  { files, chatFiles }: Ports,
  file: PendingFile,
): Promise<Pick<MessageAnswered, 'tried' | 'result'>> {
  const room = await files?.reserve(file.uploadKey, file.sizeBytes ?? 0);
  files?.release(file.uploadKey);
  if (room?.ok === false) return { tried: false, result: room };
  const result = await chatFiles?.create(file);
  return { tried: true, result: result ?? { ok: false, error: 'ChartApiFileError' } };
}

function pendingFile(facts: DraftFacts, uploadKey: string): PendingFile {
  const { ownerId, chatId, name, sizeBytes, message, linkedMessageId, declaredCrc32 } = facts;
  return {
    uploadKey,
    userId: ownerId,
    chatId,
    name,
    sizeBytes,
    message: message ?? undefined,
    linkedMessageId: linkedMessageId ?? undefined,
    declaredCrc32: declaredCrc32 ?? undefined,
  };
}

function messageAnswered(
  state: DraftState,
  { uploadKey, tried, result }: MessageAnswered,
  turn: Turn,
): Outcome<DraftEvent, OpenedDraft | null, ExpireDraft> | Refusal {
  // Expired in the meantime: the removal names the message by its key.
  if (state.phase !== 'opening' || state.draft?.uploadKey !== uploadKey) return refuse('ChartApiFileError');
  if (!result.ok) {
    const answers = [{ commandId: turn.commandId, refusal: refuse(result.error) }];
    if (tried && mayHaveMessage(result.error)) return { ...giveUp(state), answers };
    // Nothing was made, so nothing has to be removed.
    return {
      events: [{ type: 'draftEnded' }],
      timers: [{ name: EXPIRY, dueMs: null }],
      answers,
    };
  }
  const { fileId } = result.value;
  const expiresMs = turn.nowMs + turn.settings.get('DraftLifetimeSeconds') * SECOND_MS;
  const reply: OpenedDraft = { fileId, expiresMs };
  return {
    events: [{ type: 'draftPending', fileId, expiresMs }],
    claims: [{ index: 'draft', key: fileId, owner: state.place, onConflict: 'ChartApiFileError' }],
    timers: [{ name: EXPIRY, dueMs: expiresMs, command: { type: 'expireDraft', uploadKey } }],
    reply,
  };
}

function expire(
  state: DraftState,
  { uploadKey }: ExpireDraft,
  turn: Turn,
): Outcome<DraftEvent, null, ExpireDraft> {
  if (state.draft?.uploadKey !== uploadKey || state.phase === 'removing') return { reply: null };
  if (state.phase !== 'completing') return giveUp(state);
  // Its message to itself is under way or became a dead letter. Send it again: every step may be repeated.
  const dueMs = turn.nowMs + RETRY_INTERVAL_MS;
  return {
    send: [messageOf(state, 'completeDraft')],
    timers: [{ name: EXPIRY, dueMs, command: { type: 'expireDraft', uploadKey } }],
  };
}
