/** Another MCP server behind the gateway, as the catalog and calls see it (docs/upstreams.md). */

import type { ToolAccess } from '../../../domain/access.ts';
import type { Target } from '../../http-client/endpoint.ts';
import type { CallChannel, ModuleResult } from '../../http-client/types.ts';
import type { ProgressReport } from '../../modules/streamed-answer.ts';
import type { CallToken } from '../credentials/credentials.ts';
import type { ToolRow } from '../tool.ts';

/** The answer of `initialize`, which the head of every further request repeats. */
export interface UpstreamSession {
  /** Undefined where the server has no sessions. */
  readonly id: string | undefined;
  /** The negotiated revision. */
  readonly revision: string;
}

/** The pipes of a server by command. */
export interface UpstreamPipe {
  /** The way of one call; `id`: JSON text. */
  channel(id: string, onProgress: (report: ProgressReport) => void): CallChannel;
  /** No answer is expected. */
  notify(body: string): void;
}

/** A configured server. */
export interface UpstreamServer {
  readonly name: string;
  /** Title for people. */
  readonly title: string;
  readonly url: Target;
  /** Pipe to a server by command; undefined for one by address. */
  readonly pipe: UpstreamPipe | undefined;
  /** Headers of the configuration; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined while there is none: calls are refused at once. */
  readonly session: UpstreamSession | undefined;
  /** Set: callers have sessions of their own, and the server itself has none. */
  readonly personal?: PersonalSessions | undefined;
  /** A call found this session lost. Resolves with the next one, which is opened once for all; undefined without. */
  renewed(lost: UpstreamSession): Promise<UpstreamSession | undefined>;
  /** Called for every finished call, for the figures of the server. */
  noteCall(result: ModuleResult): void;
}

/** A server at which each caller is someone else (`auth: "user"`). */
export interface PersonalSessions {
  /** The caller's own session, to be left after use. Rejects with `UpstreamLoginRequired` or another row of the error table. */
  enter(userId: string): Promise<PersonalServer>;
  /** The server refused this token. Rejects with `UpstreamLoginRequired`. */
  renew(userId: string, refused: Pick<CallToken, 'keyId'>): Promise<void>;
  /** Time of the person's login there, Unix milliseconds; undefined without one. */
  connectedMs(userId: string): number | undefined;
  /**
   * Waits for a login that is not the one of `formerMs`. False when none came in time, when too many wait, or when the caller
   * is gone, which `onAbort` says.
   */
  connected(
    userId: string,
    formerMs: number | undefined,
    onAbort: (listener: () => void) => void,
  ): Promise<boolean>;
  /** Prompts, resources or templates that the server lists to this person; none without credentials. */
  offers(userId: string, kind: OfferKind): Promise<readonly Offer[]>;
}

export interface PersonalServer extends UpstreamServer {
  readonly token: CallToken;
  offers(kind: OfferKind): Promise<readonly Offer[]>;
  /** The person's list has another definition of the tool than the one that is approved. */
  differs(tool: UpstreamTool): boolean;
  leave(): void;
}

/** A tool of a server under the name that the gateway gives it. */
export interface UpstreamTool {
  readonly server: UpstreamServer;
  /** Its name there. */
  readonly ownName: string;
  readonly name: string;
  readonly row: ToolRow;
  /** Its definition as it is approved: name, title, description, schemas and annotations as sorted JSON. */
  readonly text: string;
}

export type OfferKind = 'prompts' | 'resources' | 'resourceTemplates';

/** One item. `name`: its name or URI at the gateway, which is `ownName` behind the prefix of its server. */
export interface Offer {
  readonly server: UpstreamServer;
  readonly kind: OfferKind;
  readonly ownName: string;
  readonly name: string;
  /** JSON text of the item of a list. */
  readonly json: string;
  readonly access: ToolAccess;
}
