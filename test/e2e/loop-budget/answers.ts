/** Answers of a module that are attacks: its bodies, its lines of progress, and every field of a head that the gateway reads. */
import type { ServerResponse } from 'node:http';
import { jsonTexts, TEXTS } from './inputs.ts';

/** Below the 4 MiB of an answer and the 16 KiB of a head. */
const BODY_BYTES = 3 * 1024 * 1024;
const FIELD_BYTES = 14 * 1024;

const FIELDS = [
  'cache-control',
  'connection',
  'content-disposition',
  'content-encoding',
  'content-location',
  'content-range',
  'content-security-policy',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'retry-after',
  'set-cookie',
  'trailer',
  'vary',
  'www-authenticate',
  'x-own',
] as const;

export interface ModuleAnswer {
  readonly name: string;
  send(response: ServerResponse): void;
}

export function moduleAnswers(): ModuleAnswer[] {
  return [...bodies(), ...heads()];
}

function bodies(): ModuleAnswer[] {
  return Object.entries(jsonTexts()).flatMap(([name, json]) => [
    answer(`body: ${name}`, 'application/json', () => json(BODY_BYTES)),
    answer(`result: ${name}`, 'application/json', () => `{"result":${json(BODY_BYTES - 20)}}`),
    answer(`error: ${name}`, 'application/json', () => `{"error":${json(BODY_BYTES - 20)}}`, 400),
    answer(`lines: ${name}`, 'application/x-ndjson', () => lines(json(2_000))),
  ]);
}

function lines(value: string): string {
  const line = `{"progress":1,"message":${value}}\n`;
  return `${line.repeat(Math.floor(BODY_BYTES / line.length))}{"result":1}\n`;
}

function heads(): ModuleAnswer[] {
  return FIELDS.flatMap((field) =>
    Object.entries(TEXTS).map(([name, text]) => ({
      name: `${field}: ${name}`,
      send(response: ServerResponse) {
        const value = text(FIELD_BYTES);
        response.writeHead(200, { 'content-type': 'application/json', [field]: value });
        response.end('{"result":1}');
      },
    })),
  );
}

function answer(name: string, type: string, body: () => string, status = 200): ModuleAnswer {
  return {
    name,
    send(response) {
      response.writeHead(status, { 'content-type': type });
      response.end(body());
    },
  };
}
