/**
 * v2 uploads (spec 4.7): a draft, then its bytes in one stream or in resumable pieces. Pieces are sent by `Range` or by
 * draft-ietf-httpbis-resumable-upload (interop version 8), at the same address.
 */
import type { DraftView } from '../../actors/files/v2/draft.ts';
import type { FinishedUpload } from '../../actors/files/v2/draft-state.ts';
import { GatewayError } from '../../domain/errors.ts';
import { fileSizeMaxBytes } from '../../domain/files/files.ts';
import {
  bodyFormFault,
  readUploadPlan,
  UPLOAD_FIELDS,
  type UploadPlan,
} from '../../domain/files/upload-plan.ts';
import { idText, text } from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { FileCodes } from '../files/download/file-code.ts';
import {
  draftBody,
  draftQuery,
  findDraft,
  findUpload,
  openDraft,
  SlotRotation,
  viewDraft,
} from '../files/upload/draft-access.ts';
import type { DraftUploads, UploadOutcome } from '../files/upload/v2-stream.ts';
import { checkPlainCoding } from '../http/checks/origin.ts';
import { errorReply } from '../http/exchange/reply.ts';
import {
  type AnyRoute,
  defineRoute,
  type HeaderList,
  Reply,
  type RouteContext,
} from '../http/table/route.ts';

export interface DraftDeps {
  readonly uploads: DraftUploads;
  readonly codes: FileCodes;
}

/** Takes the id of the file. A client may send the code instead, which is a secret, hence `secretPath`. */
const STREAM_PATH = '/auth/v2/file/stream_upload/:fileId';
const GROUP = 'files';
const STREAM_PARAMS = {
  fileId: idText('The first half of what create_draft answered', '1870000000000000001'),
};
/** Fields that domain/files/upload-plan.ts reads. */
const UPLOAD_READS = {
  Range: 'optional',
  'Upload-Offset': 'optional',
  'Upload-Complete': 'optional',
  'Upload-Length': 'optional',
  'Upload-Draft-Interop-Version': 'optional',
  'Content-Digest': 'optional',
  'Repr-Digest': 'optional',
} as const;
const STREAM_ERRORS = [
  'UnsupportedMediaType',
  'UnsupportedContentCoding',
  'InvalidID',
  'MaxFileSize',
  'EmptyFile',
  'WrongPart',
  'ShortPart',
  'ChecksumError',
  'UploadConflict',
  'StorageFull',
  'FileStorageFailed',
  'TaskTimedOut',
  'ChartApiFileError',
] as const;

export function createDraftRoutes(deps: DraftDeps): AnyRoute[] {
  return [
    createRoute(deps),
    streamRoute(deps, 'POST', 'Send the bytes of a draft, whole or a piece'),
    streamRoute(deps, 'PATCH', 'The same, as resumable uploads call a further piece'),
    offsetRoute(deps),
    dropRoute(deps),
  ];
}

function createRoute(deps: DraftDeps): AnyRoute {
  const rotation = new SlotRotation();
  return defineRoute({
    method: 'POST',
    path: '/auth/v2/file/create_draft',
    summary: 'Create the pending message of a file; answers `<fileId>:<fileCode>`',
    spec: '4.7',
    description:
      'Query and body carry the same fields; the body is for names and messages that are too long for a query. `chatId` 0, less or none stands for the personal storage. `crc32` is kept with the message as it is.',
    group: GROUP,
    feature: 'files',
    auth: 'either',
    query: draftQuery,
    body: draftBody,
    bodyOptional: true,
    result: text({ examples: ['1870000000000000001:f7Qm2Kx9Zt4Lw8Vb'] }),
    idempotent: true,
    errors: [
      'InvalidFileName',
      'MaxFileSize',
      'EmptyFile',
      'TooManyDrafts',
      'StorageFull',
      'FileStorageFailed',
      'TaskTimedOut',
      'LinkedMessageNotFound',
      'ChartApiFileError',
    ],
    async handle(context) {
      const { fileId } = await openDraft(context, rotation);
      return `${fileId}:${deps.codes.encode(fileId)}`;
    },
  });
}

function streamRoute(deps: DraftDeps, method: 'POST' | 'PATCH', summary: string): AnyRoute {
  return defineRoute({
    method,
    path: STREAM_PATH,
    spec: '4.7',
    secretPath: true,
    summary,
    description:
      method === 'POST'
        ? 'The body is the file itself, no form. Without `Range` it is the whole file, with `bytes=first-last` a piece of it. Fields of resumable uploads are read as their draft says. A body above `FileMaxSizeBytes` is 413.'
        : 'For `Upload-Offset` behind what is kept. All else is as with POST.',
    docs: {
      body: { type: 'application/octet-stream', description: 'Bytes of the file' },
      reads: UPLOAD_READS,
      params: STREAM_PARAMS,
      sends: ['Upload-Offset', 'Upload-Complete', 'Upload-Limit'],
      answers: {
        200: {
          description: 'The bytes are kept; the file is whole, unless `Upload-Complete` says otherwise',
        },
      },
    },
    group: GROUP,
    feature: 'files',
    auth: 'either',
    body: 'stream',
    ownMinimumRate: true,
    errors: STREAM_ERRORS,
    // Two routes share the address, and one of them sends the field.
    offers: (settings) => (method === 'POST' ? [['Upload-Limit', uploadLimit(settings)]] : []),
    refusal: (error, { settings }) =>
      error.row === 'MaxFileSize' ? errorReply(error, [['Upload-Limit', uploadLimit(settings)]]) : undefined,
    async handle(context) {
      const target = await findUpload(context, context.params['fileId']);
      const plan = planOf(context);
      const { incoming, client, span } = context;
      const request = { plan, incoming, address: client.address, span };
      const outcome = await ('slot' in target
        ? deps.uploads.upload({ ...request, target })
        : deps.uploads.repeat(target, request));
      return uploadReply(outcome, plan);
    },
  });
}

/** The stored length (HEAD of resumable uploads). A running stream ends first, so that the length stays valid. */
function offsetRoute(deps: DraftDeps): AnyRoute {
  return defineRoute({
    method: 'HEAD',
    path: STREAM_PATH,
    spec: '4.7',
    secretPath: true,
    summary: 'How many bytes of a draft are kept: where an interrupted upload continues',
    description: 'A stream of the same draft that is under way ends, so that the figure holds.',
    docs: {
      params: STREAM_PARAMS,
      sends: ['Upload-Offset', 'Upload-Complete', 'Upload-Length', 'Upload-Limit'],
      answers: { 204: { description: 'The figures are in the head' } },
    },
    group: GROUP,
    feature: 'files',
    auth: 'either',
    errors: ['InvalidID'],
    async handle(context) {
      const { actors, params, settings, nowMs } = context;
      const target = await findUpload(context, params['fileId']);
      if (!('slot' in target)) return new Reply(204, null, undefined, finishedFields(target));
      let view = await viewDraft(actors, target);
      if ('keeps' in view && view.keeps) {
        await deps.uploads.interrupt(target);
        view = await viewDraft(actors, target);
      }
      const fields = 'keeps' in view ? offsetFields(view, settings, nowMs) : finishedFields(view);
      return new Reply(204, null, undefined, fields);
    },
  });
}

function dropRoute(deps: DraftDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: STREAM_PATH,
    spec: '4.7',
    secretPath: true,
    summary: 'Give a draft up: its pending message and its bytes are removed',
    description: 'A stream that is under way ends.',
    docs: {
      params: STREAM_PARAMS,
      answers: { 204: { description: 'It is gone' } },
    },
    group: GROUP,
    feature: 'files',
    auth: 'either',
    errors: ['InvalidID'],
    async handle({ actors, session, params }) {
      await deps.uploads.drop(findDraft(actors, session, params['fileId']));
      return Reply.empty(204);
    },
  });
}

/**
 * Throws `UnsupportedContentCoding` for a compressed body, `UnsupportedMediaType` for a form. Throws `InvalidInput` for an unreadable or repeated field,
 * because bytes at a wrong offset would corrupt the file.
 */
function planOf({ header, repeatedHeaders }: RouteContext<unknown, unknown, SessionContext>): UploadPlan {
  checkPlainCoding({ header, repeatedHeaders });
  const formFault = bodyFormFault(header, repeatedHeaders);
  if (formFault !== undefined) throw new GatewayError('UnsupportedMediaType', formFault);
  const repeated = UPLOAD_FIELDS.find((name) => repeatedHeaders.has(name));
  if (repeated !== undefined) throw new GatewayError('InvalidInput', repeated);
  const result = readUploadPlan(header);
  if (!result.ok) throw new GatewayError('InvalidInput', result.fault);
  return result.plan;
}

function uploadReply(outcome: UploadOutcome, { resumable }: UploadPlan): Reply {
  if (outcome.end === 'complete') {
    const { sizeBytes } = outcome.file;
    return Reply.empty(200, resumable ? progressFields(true, sizeBytes) : []);
  }
  const { offsetBytes } = outcome;
  if (outcome.end === 'kept') return Reply.empty(200, progressFields(false, offsetBytes));
  const conflict = new GatewayError('UploadConflict', `the kept bytes end at ${offsetBytes}`);
  return errorReply(conflict, progressFields(false, offsetBytes));
}

function offsetFields(view: DraftView, settings: SettingsReader, nowMs: number): HeaderList {
  const { receivedBytes, sizeBytes, expiresMs } = view;
  const leftSeconds = Math.max(0, Math.floor((expiresMs - nowMs) / SECOND_MS));
  return [
    ...progressFields(false, receivedBytes),
    ...(sizeBytes === null ? [] : ([['Upload-Length', String(sizeBytes)]] as const)),
    ['Upload-Limit', `max-size=${fileSizeMaxBytes(settings)}, max-age=${leftSeconds}`],
  ];
}

function finishedFields({ sizeBytes }: FinishedUpload): HeaderList {
  return [...progressFields(true, sizeBytes), ['Upload-Length', String(sizeBytes)]];
}

function progressFields(complete: boolean, offsetBytes: number): HeaderList {
  return [
    ['Upload-Complete', complete ? '?1' : '?0'],
    ['Upload-Offset', String(offsetBytes)],
  ];
}

/** Limits of any upload: bytes of the largest file, and the lifetime of a draft in seconds. */
function uploadLimit(settings: SettingsReader): string {
  return `max-size=${fileSizeMaxBytes(settings)}, max-age=${settings.get('DraftLifetimeSeconds')}`;
}
