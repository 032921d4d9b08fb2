/**
 * Downloads of both versions of the file transport (spec 4.6, 4.7): access to files, and the headers of each version. The
 * router answers HEAD by the same routes.
 */
import { GatewayError } from '../../domain/errors.ts';
import { chunkCount, chunkOffsetBytes, chunkSizeBytes } from '../../domain/files/files.ts';
import { parseId } from '../../domain/ids.ts';
import { idText, object, optional, text } from '../../domain/schema.ts';
import type { DownloadForm, Downloads } from '../files/download/downloads.ts';
import type { FileMetadataCache } from '../files/download/file-cache.ts';
import type { FileCodes } from '../files/download/file-code.ts';
import {
  type AnyRoute,
  defineRoute,
  type HeaderList,
  type Reply,
  type RouteContext,
} from '../http/table/route.ts';
import type { ChatFile } from '../modules/chat-files.ts';

export interface DownloadDeps {
  readonly fileCodes: FileCodes;
  readonly fileCache: FileMetadataCache;
  readonly v1: Downloads;
  readonly v2: Downloads;
  /** `McpBasicPersonalReads`, which a reload may change. */
  readonly personalReads: () => boolean;
}

/** The bytes never change, and the reader was authorized. */
const FOR_THE_READER: HeaderList = [['Cache-Control', 'private, max-age=31536000, immutable']];
/** No reader was authorized: a browser may store the file, but must revalidate its access. */
const FOR_CODE_HOLDERS: HeaderList = [['Cache-Control', 'private, no-cache']];
/** Fields that files/downloads.ts reads and sends. */
const DOWNLOAD_READS = {
  Range: 'optional',
  'If-Match': 'optional',
  'If-None-Match': 'optional',
  'If-Modified-Since': 'optional',
  'If-Unmodified-Since': 'optional',
  'If-Range': 'optional',
  'Want-Repr-Digest': 'optional',
} as const;
const DOWNLOAD_SENDS = [
  'Accept-Ranges',
  'Content-Range',
  'Content-Disposition',
  'ETag',
  'Last-Modified',
  'Cache-Control',
  'Repr-Digest',
] as const;
const UNPROVEN =
  'a file id needs a login that proves its key: McpVerified, a signed McpApp, or a browser session';
/** Statuses of an answer with bytes. */
const BYTES = {
  200: 'The bytes',
  206: 'The range that was asked for; several are multipart/byteranges',
  304: 'The client has them',
} as const;
const ERRORS = [
  'FileNotFound',
  'PreconditionFailed',
  'RangeNotSatisfiable',
  'FileStorageFailed',
  'TaskTimedOut',
  'ModuleFailed',
  'ModuleTimedOut',
  'ModuleUnavailable',
  'ModuleAnswerTooLarge',
] as const;

export function createDownloadRoutes(deps: DownloadDeps): AnyRoute[] {
  return [createV1Route(deps), createV2Route(deps)];
}

function createV1Route(deps: DownloadDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/file/:fileId',
    summary: 'A file, or with part_number one of its chunks of 256 KB',
    spec: '4.6',
    description:
      'The chat module is asked whether the account may read the file. `part_number` gives one chunk of 256 KB, which takes no ranges.',
    docs: {
      reads: DOWNLOAD_READS,
      sends: [...DOWNLOAD_SENDS, 'X-Chunk-CRC32', 'X-File-Part'],
      params: { fileId: idText('Id of the file', '1870000000000000001') },
    },
    group: 'files',
    feature: 'files',
    auth: 'session',
    // Takes an id, but a client may send a code, which is a secret, to the wrong address.
    secretPath: true,
    query: object({ part_number: optional(text({ description: 'From 0', examples: ['0'] })) }),
    bytes: BYTES,
    errors: ['InvalidPart', ...ERRORS],
    handle(context) {
      const fileId = parseId(context.params['fileId']);
      if (fileId === undefined) throw new GatewayError('FileNotFound');
      const { fileCache, v1 } = deps;
      return withFile(fileCache, fileId, context.session.userId, context.nowMs, (file) =>
        v1.answer(context, file, v1Form(file, context.query.part_number)),
      );
    },
  });
}

/** Synchronous for a cached file: small ranges come by hundreds, and an event-loop tick is most of their cost. */
function withFile(
  fileCache: FileMetadataCache,
  fileId: string,
  readerId: string | null,
  nowMs: number,
  answer: (file: ChatFile) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  const known = fileCache.known(fileId, readerId, nowMs);
  return known === undefined ? fileCache.find(fileId, readerId, nowMs).then(answer) : answer(known);
}

/** Throws `InvalidPart`. */
function v1Form(file: ChatFile, partNumber: string | undefined): DownloadForm {
  const headers = (part: string): HeaderList => [
    ...FOR_THE_READER,
    ['X-Chunk-CRC32', String(file.crc32)],
    ['X-File-Part', part],
  ];
  if (partNumber === undefined) return { headers: headers('whole-file') };
  const number = /^[0-9]{1,15}$/.test(partNumber) ? Number(partNumber) : -1;
  const lengthBytes = chunkSizeBytes(number, file.sizeBytes);
  if (lengthBytes === undefined) throw new GatewayError('InvalidPart');
  return {
    headers: headers(`part-${number}/${chunkCount(file.sizeBytes)}`),
    part: { first: chunkOffsetBytes(number), lengthBytes },
  };
}

function createV2Route(deps: DownloadDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v2/file/:idOrCode',
    summary: 'A file by its code or its id; ranges and conditions of RFC 9110',
    spec: '4.7',
    description:
      'A code opens its file without a login, unless `FileDownloadAuthRequired` is set. An id needs a login, one that proved its key unless `McpBasicPersonalReads` is true; `FileDownloadByIdEnabled` opens ids to all.',
    docs: {
      reads: DOWNLOAD_READS,
      sends: [...DOWNLOAD_SENDS, 'Location'],
      params: {
        idOrCode: text({ description: 'Code of the file, or its id', examples: ['f7Qm2Kx9Zt4Lw8Vb'] }),
      },
    },
    group: 'files',
    feature: 'files',
    auth: 'eitherOptional',
    // A code opens its file for its holder (spec 4.7 rule 2).
    secretPath: true,
    bytes: {
      ...BYTES,
      307: 'Location: a link of 60 s to the bytes at the object storage (RedirectDownloads)',
    },
    errors: ['SessionNotFound', ...ERRORS],
    // A code opens its file without a session, so an expired bearer is ignored (spec 4.7 rule 3).
    ignoresStaleBearer: ({ idOrCode = '' }) => deps.fileCodes.read(idOrCode)?.by !== 'id',
    handle(context) {
      if (context.session === undefined) refuseWithoutSession(context);
      const reference = deps.fileCodes.read(context.params['idOrCode'] ?? '');
      if (reference === undefined) throw new GatewayError('FileNotFound');
      const readerId = reference.by === 'code' ? null : readerOf(context, deps.personalReads());
      const { fileCache, v2 } = deps;
      const headers = readerId === null ? FOR_CODE_HOLDERS : FOR_THE_READER;
      return withFile(fileCache, reference.fileId, readerId, context.nowMs, (file) =>
        v2.answer(context, file, { headers }),
      );
    },
  });
}

/** Spec 4.7 rule 3. Throws `SessionNotFound`. */
function refuseWithoutSession({ settings }: RouteContext): void {
  if (settings.get('FileDownloadAuthRequired') === 1) throw new GatewayError('SessionNotFound');
}

/**
 * The reader of a raw id, whose access the chat module checks; null where the settings open ids to all. Throws
 * `SessionNotFound`, and `Forbidden` for a login that did not prove its key: 401 would make its host log in again and again
 * (decision 0011).
 */
function readerOf({ session, settings }: RouteContext, personalReads: boolean): string | null {
  if (session !== undefined && (session.proven || personalReads)) return session.userId;
  const isOpen = settings.get('FileDownloadByIdEnabled') === 1;
  if (isOpen && (session === undefined || settings.get('FileDownloadAuthRequired') === 0)) return null;
  if (session === undefined) throw new GatewayError('SessionNotFound');
  throw new GatewayError('Forbidden', UNPROVEN);
}
