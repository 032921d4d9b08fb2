/** Calls of sandbox modules that speak WebDAV in place of JSON. */
import type { ModuleCall } from './call-arguments.ts';
import { SandboxError } from './errors.ts';

export interface DavRequest {
  readonly method: string;
  /** Undecoded. */
  readonly path: string;
  readonly body: string;
  readonly crm: string | undefined;
  readonly depth: string | undefined;
  readonly ifMatch: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface DavCall extends Omit<DavRequest, 'crm'>, Pick<ModuleCall, 'userId' | 'tick' | 'commit'> {}

export interface DavAnswer {
  readonly status: number;
  readonly body: string;
  /** Absent: none. */
  readonly contentType?: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** The user of a call. */
export function ownerOf({ userId }: DavCall): string {
  if (userId === null) throw new SandboxError('Unauthorized');
  return userId;
}
