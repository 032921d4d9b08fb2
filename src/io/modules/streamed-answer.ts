/** Answers of modules as lines of JSON: reports of progress, then the line that is the body (docs/modules.md). */
import type { AnswerReader } from '../http-client/types.ts';
import { LineBuffer } from './line-buffer.ts';

export const LINES_TYPE = 'application/x-ndjson';
const IS_LINES = /^application\/x-ndjson\s*(?:;|$)/i;

export interface ProgressReport {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** True if an answer is read as lines. The body of an error status is kept whole. */
export function isStreamed(status: number, contentType: string): boolean {
  return status < 300 && IS_LINES.test(contentType);
}

export class StreamedAnswer implements AnswerReader {
  readonly #onProgress: ((progress: ProgressReport) => void) | undefined;
  readonly #lines = new LineBuffer();
  #body: string | undefined;

  constructor(onProgress?: (progress: ProgressReport) => void) {
    this.#onProgress = onProgress;
  }

  read(bytes: Buffer): string | undefined {
    return this.#lines.read(bytes, (line) => this.#line(line));
  }

  end(): Buffer | undefined {
    const fault = this.#line(this.#lines.rest());
    return fault === undefined && this.#body !== undefined ? Buffer.from(this.#body) : undefined;
  }

  /** The fault of a line. */
  #line(text: string): string | undefined {
    if (text.trim() === '') return undefined;
    if (this.#body !== undefined) return 'a line after the result';
    const value = objectOf(text);
    if (value === undefined) return 'a line that is no JSON object';
    // The text is kept, because numbers must keep their digits.
    if ('result' in value || 'error' in value) this.#body = text;
    else {
      const progress = progressOf(value);
      if (progress === undefined) return 'a line that is neither progress nor result';
      this.#onProgress?.(progress);
    }
    return undefined;
  }
}

function objectOf(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function progressOf(value: object): ProgressReport | undefined {
  const { progress, total, message } = value as Readonly<Record<string, unknown>>;
  if (!isFiniteNumber(progress)) return undefined;
  if (total !== undefined && !isFiniteNumber(total)) return undefined;
  if (message !== undefined && typeof message !== 'string') return undefined;
  return {
    progress,
    ...(total === undefined ? {} : { total }),
    ...(message === undefined ? {} : { message }),
  };
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
