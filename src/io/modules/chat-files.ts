/**
 * Calls to the chat module about files: create, complete and cancel the message of an upload, and describe a file for a
 * download. They are made for the gateway itself (docs/modules.md), so they can be repeated after a restart.
 */

import type { ChatFilePort, CompleteFile, PendingFile, PortResult } from '../../actors/runtime/ports.ts';
import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import { type FileKey, isUndecided } from '../../domain/files/files.ts';
import { parseId } from '../../domain/ids.ts';
import { keepNewest } from '../../domain/limits/newest.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { endpointUrl, parseEndpoint } from '../http-client/endpoint.ts';
import { gatewayHeaders } from '../http-client/headers.ts';
import { FACTS_MAX_BYTES, type ModuleAnswer, type ModuleResult } from '../http-client/types.ts';
import type { ModuleClient } from './client.ts';

const CALL_TIMEOUT_MS = 10 * SECOND_MS;
/** `error.code` of a module for a message that it does not have (docs/modules.md). */
const UNKNOWN_MESSAGE = 2204;
/** A proxy answers them in place of a module that is away. */
const AWAY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** Personal chats whose ids are cached, about 100 bytes each; the oldest entry leaves first. */
const PERSONAL_CHATS_MAX = 10_000;
/** RFC 9110 8.3.1, in lower case, with at most a charset. */
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,63}\/[a-z0-9!#$&^_.+-]{1,63}(?:; ?charset=[A-Za-z0-9_-]{1,40})?$/;

const SHA256_HEX = /^[0-9a-f]{64}$/;

/** A complete file as the chat module describes it. */
export interface ChatFile {
  readonly fileId: string;
  /** The owner in the storage path. */
  readonly ownerId: string;
  readonly name: string;
  readonly sizeBytes: number;
  /** Unsigned, of all bytes. */
  readonly crc32: number;
  /** Digest of all bytes, when the module knows it. */
  readonly sha256: Buffer | undefined;
  /** Creation of the message, Unix milliseconds. */
  readonly sentMs: number;
  /** A valid media type, when the module knows it. */
  readonly contentType: string | undefined;
}

export interface ChatFiles extends ChatFilePort {
  /**
   * `readerId`: the user whose access is checked; null for the holder of the file's code. `FileNotFound`: unknown,
   * pending or deleted. `Forbidden`: the reader is not in the file's chat. Otherwise the module's failure.
   */
  describe(fileId: string, readerId: string | null): Promise<PortResult<ChatFile>>;
}

interface ChatFilesOptions {
  readonly modules: Pick<ModuleClient, 'call'>;
  readonly chatUrl: string;
  readonly project: string;
  readonly newRequestId: () => string;
  /** Checked at every completion: a blocked user publishes nothing. */
  readonly isBlocked: (userId: string) => boolean | Promise<boolean>;
  /** The beginning of a text file, which is published with it; undefined for other files. */
  readonly textOf?: (file: FileKey) => Promise<string | undefined>;
}

/** Undefined without a chat module. */
export function chatFilesOf(
  chatUrl: string | undefined,
  options: Omit<ChatFilesOptions, 'chatUrl'>,
): ChatFiles | undefined {
  return chatUrl === undefined ? undefined : createChatFiles({ ...options, chatUrl });
}

export function createChatFiles(options: ChatFilesOptions): ChatFiles {
  return new ChatFileCalls(options);
}

class ChatFileCalls implements ChatFiles {
  readonly #options: ChatFilesOptions;
  /** Personal chats by user. The id of a personal chat never changes (docs/modules.md "Files"). */
  readonly #personalChats = new Map<string, string>();

  constructor(options: ChatFilesOptions) {
    this.#options = options;
  }

  async create(file: PendingFile): Promise<PortResult<{ readonly fileId: string }>> {
    if (file.chatId !== null) return await this.#createIn(file.chatId, file);
    const cached = this.#personalChats.get(file.userId);
    if (cached !== undefined) {
      const created = await this.#createIn(cached, file);
      if (created.ok || created.error !== 'Forbidden') return created;
      // The chat is gone: the module creates another one.
      this.#personalChats.delete(file.userId);
    }
    const chatId = await this.#personalChat(file.userId);
    return chatId.ok ? await this.#createIn(chatId.value, file) : chatId;
  }

  async #createIn(chatId: string, file: PendingFile): Promise<PortResult<{ readonly fileId: string }>> {
    const body = {
      userId: file.userId,
      chatId,
      uploadKey: file.uploadKey,
      name: file.name,
      ...(file.message === undefined ? {} : { text: file.message }),
      ...(file.sizeBytes === null ? {} : { sizeBytes: file.sizeBytes }),
      ...(file.linkedMessageId === undefined ? {} : { linkedMessageId: file.linkedMessageId }),
      ...(file.declaredCrc32 === undefined ? {} : { crc32: file.declaredCrc32 }),
    };
    const result = await this.#post('files/create', body);
    const fileId = parseId(resultOf(result)?.['fileId']);
    if (fileId !== undefined) return ok({ fileId });
    const unlinked = file.linkedMessageId !== undefined && isUnknownMessage(result);
    return failed(unlinked ? 'LinkedMessageNotFound' : writeFailure(result, [403, 404]));
  }

  async complete({ fileId, userId, sizeBytes, crc32, sha256 }: CompleteFile): Promise<PortResult<null>> {
    const refused = await this.#refusalOf(userId);
    if (refused !== undefined) return failed(refused);
    const content = await this.#options.textOf?.({ owner: userId, fileId });
    const digest = sha256 === undefined ? {} : { sha256 };
    const body = { fileId, sizeBytes, crc32, ...digest, ...(content === undefined ? {} : { content }) };
    const result = await this.#post('files/complete', body);
    return isSuccess(result) ? ok(null) : failed(completionFailure(result));
  }

  async cancel(uploadKey: string): Promise<PortResult<null>> {
    const result = await this.#post('files/cancel', { uploadKey });
    return isSuccess(result) ? ok(null) : failed('ChartApiFileError');
  }

  async describe(fileId: string, readerId: string | null): Promise<PortResult<ChatFile>> {
    const query = readerId === null ? { fileId } : { fileId, userId: readerId };
    const result = await this.#call('GET', 'files/describe', undefined, query);
    if (!isSuccess(result)) return failed(readFailure(result));
    const file = readFile(resultOf(result));
    return file === undefined ? failed('ModuleFailed') : ok(file);
  }

  /** A state that cannot be read now, as where the owner of the account changes, decides nothing. */
  async #refusalOf(userId: string): Promise<ErrorName | undefined> {
    try {
      return (await this.#options.isBlocked(userId)) ? 'Forbidden' : undefined;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return isUndecided(error.row) ? error.row : 'ChartApiFileError';
    }
  }

  async #personalChat(userId: string): Promise<PortResult<string>> {
    const result = await this.#post('chats/personal', { userId });
    const chatId = parseId(resultOf(result)?.['chatId']);
    if (chatId === undefined) return failed('ChartApiFileError');
    keepNewest(this.#personalChats, PERSONAL_CHATS_MAX, userId, chatId);
    return ok(chatId);
  }

  #post(path: string, body: object): Promise<ModuleResult> {
    return this.#call('POST', path, JSON.stringify(body), {});
  }

  #call(
    method: 'GET' | 'POST',
    path: string,
    body: string | undefined,
    query: Readonly<Record<string, string>>,
  ): Promise<ModuleResult> {
    const { modules, chatUrl, project, newRequestId } = this.#options;
    const reference = `chat:/chat/v1/${path}`;
    const parsed = parseEndpoint(reference, new Map([['chat', chatUrl]]));
    if (!parsed.ok) throw new Error(`the address of the chat module ${parsed.fault}`);
    const target = endpointUrl(parsed.endpoint, {}, query);
    if (!target.ok) throw new Error(`${target.argument} cannot stand in a query`);
    const headers = gatewayHeaders({ kind: 'anonymous' }, { project, requestId: newRequestId() });
    return modules.call({
      method,
      url: target.url,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      body,
      timeoutMs: CALL_TIMEOUT_MS,
      endpoint: reference,
    });
  }
}

function ok<T>(value: T): PortResult<T> {
  return { ok: true, value };
}

function failed(error: ErrorName): { readonly ok: false; readonly error: ErrorName } {
  return { ok: false, error };
}

type Answered = Extract<ModuleResult, { ok: true }>;

function isSuccess(result: ModuleResult): result is Answered {
  return result.ok && result.answer.status >= 200 && result.answer.status < 300;
}

/** Statuses that mean the user may not post there are `Forbidden`; all others are a failed call (spec 4.6). */
function writeFailure(result: ModuleResult, forbidden: readonly number[]): ErrorName {
  return result.ok && forbidden.includes(result.answer.status) ? 'Forbidden' : 'ChartApiFileError';
}

/** `ModuleFailed`: no answer of the module, which may have completed the message. `Overloaded`: it was not asked. */
function completionFailure(result: ModuleResult): ErrorName {
  if (!result.ok) return result.error === 'Overloaded' ? 'Overloaded' : 'ModuleFailed';
  return AWAY_STATUSES.has(result.answer.status) ? 'ModuleFailed' : writeFailure(result, [403]);
}

/** The chat exists, but not the message to which the file is linked. */
function isUnknownMessage(result: ModuleResult): boolean {
  if (!result.ok || result.answer.status !== 404) return false;
  const error = parsed(result.answer)?.['error'];
  return isRecord(error) && error['code'] === UNKNOWN_MESSAGE;
}

function readFailure(result: ModuleResult): ErrorName {
  if (!result.ok) return result.error === 'Aborted' ? 'ModuleFailed' : result.error;
  if (result.answer.status === 403) return 'Forbidden';
  return result.answer.status === 404 ? 'FileNotFound' : 'ModuleFailed';
}

function resultOf(result: ModuleResult): Readonly<Record<string, unknown>> | undefined {
  if (!isSuccess(result)) return undefined;
  const value = parsed(result.answer)?.['result'];
  return isRecord(value) ? value : undefined;
}

/** Undefined when the answer is no JSON object, or too large for one with facts. */
function parsed(answer: ModuleAnswer): Readonly<Record<string, unknown>> | undefined {
  if (answer.body.length > FACTS_MAX_BYTES) return undefined;
  try {
    const value: unknown = JSON.parse(answer.body.toString('utf8'));
    return isRecord(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readFile(fields: Readonly<Record<string, unknown>> | undefined): ChatFile | undefined {
  const fileId = parseId(fields?.['fileId']);
  const ownerId = parseId(fields?.['senderId']);
  const { name, sizeBytes, crc32, dateTime, contentType, sha256: hex } = fields ?? {};
  if (fileId === undefined || ownerId === undefined || typeof name !== 'string') return undefined;
  if (!isCount(sizeBytes) || !isCount(crc32) || crc32 > 0xffff_ffff) return undefined;
  const sentMs = typeof dateTime === 'string' ? Date.parse(dateTime) : Number.NaN;
  if (Number.isNaN(sentMs)) return undefined;
  const fits = typeof contentType === 'string' && MEDIA_TYPE.test(contentType);
  const sha256 = typeof hex === 'string' && SHA256_HEX.test(hex) ? Buffer.from(hex, 'hex') : undefined;
  const type = fits ? contentType : undefined;
  return { fileId, ownerId, name, sizeBytes, crc32, sha256, sentMs, contentType: type };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
