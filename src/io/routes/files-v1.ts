/**
 * Buffered uploads (spec 4.6): init_upload, upload_part, cancel_upload, and the extension upload_status. An upload belongs
 * to the account whose session opened it; other accounts get the answer for an unknown id.
 */

import { upload } from '../../actors/files/v1/upload.ts';
import { type GrantUpload, UPLOAD_SLOTS_ID, uploadSlots } from '../../actors/files/v1/upload-slots.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { toUnsignedCrc32 } from '../../domain/files/files.ts';
import { bodyFormFault } from '../../domain/files/upload-plan.ts';
import { ID_MAX, ID_MIN } from '../../domain/ids.ts';
import { isLoopback, networksOf } from '../../domain/limits/networks.ts';
import type { SharedBound } from '../../domain/limits/shares.ts';
import {
  array,
  idText,
  integer,
  nothing,
  nullable,
  object,
  optional,
  type Static,
  text,
  union,
  utcText,
} from '../../domain/schema.ts';
import { toIso } from '../../domain/time.ts';
import type { FileCodes } from '../files/download/file-code.ts';
import type { PartUploads } from '../files/upload/v1-parts.ts';
import { checkPlainCoding } from '../http/checks/origin.ts';
import { type AnyRoute, defineRoute, type RequestLimiter } from '../http/table/route.ts';

export interface V1UploadDeps {
  readonly uploads: PartUploads;
  readonly fileCodes: FileCodes;
  /** Counts refused uploads. The actor of the upload slots holds the slots themselves. */
  readonly slotBound: Pick<SharedBound, 'countRefusal'>;
}

const GROUP = 'files';
/** Signed, unlike other ids: 0 and less mean the personal storage (spec 4.6 rule 3). */
const signedId = union([integer(), text({ pattern: '^-?[0-9]{1,19}$', form: 'an id of up to 19 digits' })], {
  examples: ['0'],
});
/** Text, so that a value that is no number is refused with the error code of its field (spec 7.4). */
const uploadIdText = optional(text({ description: 'The id that init_upload gave', examples: ['907060870'] }));

const initBody = object({
  FileName: text({ description: 'At most 255 bytes of UTF-8', examples: ['notes.txt'] }),
  FileSize: integer({ description: 'Bytes', examples: [5] }),
  CRC32: integer({
    description: 'Of the whole file; negative values are read as 32-bit two’s complement',
    examples: [907060870],
  }),
  ChatId: optional(nullable(signedId)),
  Message: optional(nullable(text({ examples: ['The minutes of today'] }))),
  LinkedMessageId: optional(nullable(signedId)),
});

const partResult = object({
  chunkNumber: integer(),
  fileId: nullable(idText()),
  fileCode: nullable(text({ examples: ['f7Qm2Kx9Zt4Lw8Vb'] })),
});

const statusResult = object({
  uploadId: integer({ examples: [907060870] }),
  chunkCount: integer(),
  missing: array(integer()),
  expiresUtc: utcText(),
});

export function createV1UploadRoutes(deps: V1UploadDeps): AnyRoute[] {
  return [initRoute(deps), partRoute(deps), cancelUpload, uploadStatus];
}

function initRoute({ slotBound }: V1UploadDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/file/init_upload',
    summary: 'Open a buffered upload; the id is the declared CRC-32, unsigned',
    spec: '4.6',
    description:
      'One upload of an account at a time. A chat id of 0, less, or none at all stands for the personal storage of the account. Chunks have 256 KB; `upload_part` sends them in any order.',
    group: GROUP,
    feature: 'files',
    auth: 'session',
    body: initBody,
    result: integer({ examples: [907060870] }),
    errors: [
      'InvalidFileName',
      'EmptyFile',
      'MaxFileSize',
      'AlreadyDownload',
      'TooManyDownloads',
      'CRC32AlreadyUsed',
      'LinkedMessageNotFound',
      'ChartApiFileError',
      'StorageFull',
    ],
    async handle({ body, session, actors, client, site }) {
      await endExpired(actors);
      // Outside Production one machine may open all uploads, for tests and trials.
      const networks = isLoopback(client.address) && !site.production ? [] : networksOf(client.address);
      const command = { ...readInit(body, session.userId), networks };
      try {
        return await actors.ask(uploadSlots, UPLOAD_SLOTS_ID, command);
      } catch (error) {
        if (error instanceof GatewayError && error.row === 'TooManyDownloads')
          slotBound.countRefusal(error.detail === undefined ? 'maximum' : 'network');
        throw error;
      }
    },
  });
}

function partRoute(deps: V1UploadDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/file/upload_part',
    summary: 'Send one chunk of 256 KB, the last one shorter; the last missing chunk completes the file',
    spec: '4.6',
    description:
      'The body is the chunk itself, no form. `fileId` and `fileCode` stay null until the last missing chunk has come. Not counted by the limiter, but for refusals of parts that belong to no upload.',
    docs: {
      body: {
        type: 'application/octet-stream',
        description: 'Bytes of the chunk: 262144, of the last one the rest',
      },
      examples: { usual: { query: { uploadId: '907060870', chunkNumber: '0', chunkCrc32: '907060870' } } },
    },
    group: GROUP,
    feature: 'files',
    auth: 'session',
    limits: ['NoRateLimit'],
    query: object({
      uploadId: uploadIdText,
      chunkNumber: optional(text({ description: 'From 0', examples: ['0'] })),
      chunkCrc32: optional(text({ description: 'Of this chunk', examples: ['907060870'] })),
    }),
    body: 'stream',
    ownMinimumRate: true,
    result: partResult,
    errors: [
      'InvalidID',
      'InvalidPart',
      'WrongPart',
      'ShortPart',
      'ChecksumError',
      'ChartApiFileError',
      'StorageFull',
      'FileStorageFailed',
      'TaskTimedOut',
      'UnsupportedMediaType',
      'UnsupportedContentCoding',
    ],
    async handle({ query, session, actors, client, incoming, limiter, header, repeatedHeaders, span }) {
      try {
        checkPlainCoding({ header, repeatedHeaders });
        const formFault = bodyFormFault(header, repeatedHeaders);
        if (formFault !== undefined) throw new GatewayError('UnsupportedMediaType', formFault);
        const { chunkNumber, fileId } = await deps.uploads.store({
          actors,
          userId: session.userId,
          address: client.address,
          uploadId: readUploadId(query.uploadId),
          chunkNumber: readChunkNumber(query.chunkNumber),
          crc32: readCrc32(query.chunkCrc32) ?? -1,
          body: incoming,
          span,
        });
        return { chunkNumber, fileId, fileCode: fileId === null ? null : deps.fileCodes.encode(fileId) };
      } catch (error) {
        throw chargedRefusal(error, limiter);
      }
    },
  });
}

const cancelUpload = defineRoute({
  method: 'POST',
  path: '/auth/v1/file/cancel_upload',
  summary: 'Give an upload up; its slot is free at once',
  spec: '4.6',
  description: 'The pending message of the file is removed.',
  docs: { examples: { usual: { query: { uploadId: '907060870' } } } },
  group: GROUP,
  feature: 'files',
  auth: 'session',
  query: object({ uploadId: uploadIdText }),
  result: nothing(),
  errors: ['InvalidID'],
  async handle({ query, session, actors }) {
    const command = { type: 'cancelUpload' as const, uploadId: readUploadId(query.uploadId) };
    return await actors.ask(upload, session.userId, command);
  },
});

const uploadStatus = defineRoute({
  method: 'GET',
  path: '/auth/v1/file/upload_status',
  summary: 'Which chunks of an upload are missing, and until when it waits for them',
  spec: '4.6',
  description: 'For clients that lost their connection: send what is `missing` and nothing else.',
  docs: { examples: { usual: { query: { uploadId: '907060870' } } } },
  group: GROUP,
  feature: 'files',
  auth: 'session',
  query: object({ uploadId: uploadIdText }),
  result: statusResult,
  errors: ['InvalidID'],
  async handle({ query, session, actors }) {
    const statusQuery = { type: 'status' as const, uploadId: readUploadId(query.uploadId) };
    const { expiresMs, ...status } = await actors.query(upload, session.userId, statusQuery);
    return { ...status, expiresUtc: toIso(expiresMs) };
  },
});

/** Expires overdue uploads before a new one is checked (spec 3), whether or not their timers have fired. */
async function endExpired(actors: ActorSystem): Promise<void> {
  const stale = await actors.query(uploadSlots, UPLOAD_SLOTS_ID, { type: 'stale' });
  await Promise.all(
    stale.map(({ userId, uploadKey }) =>
      actors.ask(upload, userId, { type: 'expireUpload', uploadKey, waits: true }),
    ),
  );
}

function readInit(body: Static<typeof initBody>, userId: string): GrantUpload {
  const uploadId = toUnsignedCrc32(body.CRC32);
  if (uploadId === undefined) throw new GatewayError('InvalidInput', 'body/CRC32: expected a CRC-32');
  return {
    type: 'grantUpload',
    userId,
    uploadId,
    name: body.FileName,
    sizeBytes: body.FileSize,
    chatId: readPositiveId(body.ChatId, 'ChatId'),
    message: body.Message ?? null,
    linkedMessageId: readPositiveId(body.LinkedMessageId, 'LinkedMessageId'),
  };
}

/** Null for 0 and less, and for a missing id. */
function readPositiveId(value: string | number | null | undefined, field: string): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number' && !Number.isSafeInteger(value))
    throw new GatewayError('InvalidInput', `body/${field}: too large for a number, send a text`);
  const id = BigInt(value);
  if (id < ID_MIN || id > ID_MAX)
    throw new GatewayError('InvalidInput', `body/${field}: expected a 64-bit integer`);
  return id > 0n ? String(id) : null;
}

function readUploadId(sent: string | undefined): number {
  const uploadId = readCrc32(sent);
  if (uploadId === undefined) throw new GatewayError('InvalidID');
  return uploadId;
}

function readCrc32(sent: string | undefined): number | undefined {
  return sent !== undefined && /^-?[0-9]{1,10}$/.test(sent) ? toUnsignedCrc32(Number(sent)) : undefined;
}

function readChunkNumber(sent: string | undefined): number {
  return sent !== undefined && /^[0-9]{1,16}$/.test(sent) ? Number(sent) : Number.NaN;
}

/** Refusals of parts that make no progress. */
const UNPRODUCTIVE_ERRORS: ReadonlySet<string> = new Set([
  'InvalidID',
  'InvalidPart',
  'UnsupportedMediaType',
  'UnsupportedContentCoding',
]);

/** The limiter does not count parts, but it does count refused ones, which would be free otherwise. */
function chargedRefusal(error: unknown, limiter: RequestLimiter): unknown {
  if (!(error instanceof GatewayError) || !UNPRODUCTIVE_ERRORS.has(error.row)) return error;
  try {
    limiter.chargeAnonymous(1);
    return error;
  } catch (limited) {
    return limited;
  }
}
