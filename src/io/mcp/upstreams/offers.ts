/**
 * Prompts, resources and resource templates of another MCP server: read from its lists, and as entries of the catalog. An item
 * that would break a client or hide a text is left out and named.
 */
import {
  type AccessPolicy,
  CALLER_CLASSES,
  type CallerClass,
  mayCallTool,
  type ToolAccess,
} from '../../../domain/access.ts';
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import {
  array,
  boolean,
  compileSchema,
  number,
  object,
  oneOf,
  optional,
  text,
} from '../../../domain/schema.ts';
import type { Endpoint } from '../../http-client/endpoint.ts';
import { isObject } from '../input-schema.ts';
import type { LaterNames, Subset } from '../subsets.ts';
import { isDeeper, type LeftOut, shownName, UPSTREAM_NAME, unseenIn } from './definitions.ts';
import type { Offer, OfferKind, PersonalSessions, UpstreamServer } from './types.ts';

/** Items of one list of one server. */
const OFFERS_MAX = 512;
/** Characters of one item. */
const ITEM_MAX = 16 * 1024;
const NESTING_MAX = 16;
const NO_SESSIONS: readonly PersonalSessions[] = [];
const URI = /^[\x21-\x7e]{1,2048}$/;

const line = text({ maxLength: 8192 });
const shown = { title: optional(line), description: optional(line) };
const about = {
  ...shown,
  name: text({ minLength: 1, maxLength: 1024 }),
  mimeType: optional(text({ maxLength: 256 })),
  annotations: optional(
    object({
      audience: optional(array(oneOf(['user', 'assistant']))),
      priority: optional(number()),
      lastModified: optional(text({ maxLength: 64 })),
    }),
  ),
};

/** By the member of a list: how it is asked for, what names an item, and the members that clients get. */
export const OFFER_KINDS = {
  prompts: {
    method: 'prompts/list',
    capability: 'prompts',
    key: 'name',
    shape: compileSchema(
      object({
        ...shown,
        arguments: optional(array(object({ ...shown, name: line, required: optional(boolean()) }))),
      }),
    ),
    members: ['title', 'description', 'arguments'],
  },
  resources: {
    method: 'resources/list',
    capability: 'resources',
    key: 'uri',
    shape: compileSchema(object({ ...about, size: optional(number()) })),
    members: ['name', 'title', 'description', 'mimeType', 'size', 'annotations'],
  },
  resourceTemplates: {
    method: 'resources/templates/list',
    capability: 'resources',
    key: 'uriTemplate',
    shape: compileSchema(object(about)),
    members: ['name', 'title', 'description', 'mimeType', 'annotations'],
  },
} as const satisfies Record<OfferKind, object>;
export const OFFERED = Object.keys(OFFER_KINDS) as OfferKind[];

interface ReadOffers {
  readonly offers: readonly Offer[];
  readonly leftOut: readonly LeftOut[];
}

/** Reads the items of one list. */
export function readOffers(
  server: UpstreamServer,
  configuration: McpServerConfiguration,
  kind: OfferKind,
  items: readonly unknown[],
): ReadOffers {
  const offers = new Map<string, Offer>();
  const leftOut: LeftOut[] = [];
  for (const item of items.slice(0, OFFERS_MAX)) {
    const read = readOffer(server, configuration, kind, item);
    const reason = typeof read === 'string' ? read : offers.has(read.name) ? 'is listed twice' : undefined;
    if (reason !== undefined) leftOut.push({ name: shownName(ownNameOf(kind, item)), reason });
    else if (typeof read !== 'string') offers.set(read.name, read);
  }
  if (items.length > OFFERS_MAX)
    leftOut.push({ name: `+${items.length - OFFERS_MAX}`, reason: `more than ${OFFERS_MAX} ${kind}` });
  return { offers: [...offers.values()], leftOut };
}

function ownNameOf(kind: OfferKind, item: unknown): string {
  const name = isObject(item) ? item[OFFER_KINDS[kind].key] : undefined;
  return typeof name === 'string' ? name : '';
}

/** The offer, or why it is left out. */
function readOffer(
  server: UpstreamServer,
  { prefix, promptAccess, resourceAccess }: McpServerConfiguration,
  kind: OfferKind,
  item: unknown,
): Offer | string {
  const { key, members, shape } = OFFER_KINDS[kind];
  const ownName = ownNameOf(kind, item);
  if (!isObject(item) || ownName === '') return `has no ${key}`;
  const name = kind === 'prompts' ? prefix + ownName : `${uriPrefix(server.name)}${ownName}`;
  if (kind === 'prompts' && !UPSTREAM_NAME.test(name))
    return 'has no name of at most 64 letters, digits, "_" and "-"';
  if (kind !== 'prompts' && !URI.test(name)) return 'has no URI of at most 2048 characters';
  // Clients reject null members, and the gateway shows no others.
  const picked = members.flatMap((member) => (item[member] == null ? [] : [[member, item[member]] as const]));
  const given = Object.fromEntries(picked);
  if (isDeeper(given, NESTING_MAX)) return 'is nested too deep';
  const unseen = unseenIn([ownName, given]);
  if (unseen !== undefined) return `has the invisible character ${unseen}`;
  const [fault] = shape.faults(given);
  if (fault !== undefined) return `${fault.path} ${fault.message}`.trim();
  const json = JSON.stringify({ [key]: name, ...given });
  if (json.length > ITEM_MAX) return `has more than ${ITEM_MAX} characters`;
  const access = kind === 'prompts' ? promptAccess : resourceAccess;
  return { server, kind, ownName, name, json, access };
}

/** Names of the servers and their prefixes. */
export function laterNames(
  servers: readonly { readonly name: string; readonly prefix: string }[],
): LaterNames {
  return {
    tools: servers.map(({ prefix }) => prefix),
    resources: servers.map(({ name }) => uriPrefix(name)),
  };
}

/** URIs of a server are behind this, so that those of two servers differ. */
function uriPrefix(server: string): string {
  return `up+${server}:`;
}

export interface OfferEntry {
  readonly offer: Offer;
  readonly callers: ReadonlySet<CallerClass>;
  readonly endpoint: Endpoint;
}

/** All offers of a catalog. */
export class Offers {
  readonly #entries: readonly OfferEntry[];
  readonly #byName: Readonly<Record<'prompts' | 'resources', ReadonlyMap<string, OfferEntry>>>;
  readonly #templates: readonly OfferEntry[];
  readonly #personal: readonly PersonalOffers[];

  constructor(offers: readonly Offer[], policy: AccessPolicy, personal: readonly PersonalUpstream[] = []) {
    this.#personal = personal.map((each) => personalOffers(each, policy));
    const entries = offers.map((offer) => offerEntry(offer, policy));
    const ofKind = (kind: OfferKind) => entries.filter(({ offer }) => offer.kind === kind);
    const named = (kind: OfferKind) => new Map(ofKind(kind).map((entry) => [entry.offer.name, entry]));
    this.#entries = entries;
    this.#byName = { prompts: named('prompts'), resources: named('resources') };
    this.#templates = ofKind('resourceTemplates');
  }

  prompt(name: string): OfferEntry | undefined {
    return this.#byName.prompts.get(name) ?? this.#personalOffer('prompts', name);
  }

  /** One that is listed, or whose URI begins as a template does before its first variable: its server judges the rest. */
  resource(uri: string): OfferEntry | undefined {
    const template = () =>
      this.#templates.find(({ offer: { name } }) => uri.startsWith(name.slice(0, literalLength(name))));
    return this.#byName.resources.get(uri) ?? template() ?? this.#personalOffer('resources', uri);
  }

  /** Sessions of people at the servers whose items a class of callers may use. */
  personalFor(kind: OfferKind, caller: CallerClass): readonly PersonalSessions[] {
    if (this.#personal.length === 0) return NO_SESSIONS;
    return this.#personal.flatMap(({ sessions, prompts, resources }) =>
      (kind === 'prompts' ? prompts : resources).callers.has(caller) ? [sessions] : [],
    );
  }

  /**
   * Finds the offer of a server at which each caller is someone else: it judges the name, and has its own list for
   * each.
   */
  #personalOffer(kind: 'prompts' | 'resources', name: string): OfferEntry | undefined {
    if (!(kind === 'prompts' ? UPSTREAM_NAME : URI).test(name)) return undefined;
    const found = this.#personal.find(
      ({ [kind]: { prefix } }) => name.length > prefix.length && name.startsWith(prefix),
    );
    if (found === undefined) return undefined;
    const { [kind]: kinds, server } = found;
    const ownName = name.slice(kinds.prefix.length);
    const offer: Offer = { server, kind, ownName, name, json: '', access: kinds.access };
    return { offer, callers: kinds.callers, endpoint: kinds.endpoint };
  }

  /** True for names that a server listed: others are no labels of metrics. */
  has(name: string): boolean {
    return this.#byName.prompts.has(name) || this.#byName.resources.has(name);
  }

  get hasPrompts(): boolean {
    return this.#byName.prompts.size > 0 || this.#personal.length > 0;
  }

  /** Items of a list, as JSON texts. */
  itemsFor(kind: OfferKind, caller: CallerClass, { hasTool, hasResource }: Subset): string[] {
    const isShown = kind === 'prompts' ? hasTool : hasResource;
    return this.#entries
      .filter(({ offer, callers }) => offer.kind === kind && callers.has(caller) && isShown(offer.name))
      .map(({ offer }) => offer.json);
  }
}

function literalLength(template: string): number {
  const at = template.indexOf('{');
  return at < 0 ? template.length : at;
}

function offerEntry(offer: Offer, policy: AccessPolicy): OfferEntry {
  const { access, kind, server } = offer;
  return { offer, ...reachOf(server, kind === 'prompts' ? 'prompts' : 'resources', access, policy) };
}

/** The breaker is that of the prompts, or of the resources, of a server. */
function reachOf(
  server: UpstreamServer,
  kind: 'prompts' | 'resources',
  access: ToolAccess,
  policy: AccessPolicy,
): Pick<OfferEntry, 'callers' | 'endpoint'> {
  const callers = CALLER_CLASSES.filter((caller) => mayCallTool(access, caller, policy));
  return { callers: new Set(callers), endpoint: upstreamEndpoint(server, `mcp:${server.name}/${kind}`) };
}

/** A server with `auth: "user"`, as the catalog sees it. */
export interface PersonalUpstream {
  readonly server: UpstreamServer;
  readonly sessions: PersonalSessions;
  readonly configuration: McpServerConfiguration;
}

interface PersonalKind extends Pick<OfferEntry, 'callers' | 'endpoint'> {
  readonly prefix: string;
  readonly access: ToolAccess;
}

interface PersonalOffers {
  readonly server: UpstreamServer;
  readonly sessions: PersonalSessions;
  readonly prompts: PersonalKind;
  readonly resources: PersonalKind;
}

function personalOffers(
  { server, sessions, configuration }: PersonalUpstream,
  policy: AccessPolicy,
): PersonalOffers {
  const { prefix, promptAccess, resourceAccess } = configuration;
  const kindOf = (kind: 'prompts' | 'resources', own: string, access: ToolAccess): PersonalKind => ({
    prefix: own,
    access,
    ...reachOf(server, kind, access, policy),
  });
  return {
    server,
    sessions,
    prompts: kindOf('prompts', prefix, promptAccess),
    resources: kindOf('resources', uriPrefix(server.name), resourceAccess),
  };
}

export function upstreamEndpoint({ url }: UpstreamServer, reference: string): Endpoint {
  const { origin, pathname: path, search } = url;
  return {
    reference,
    module: null,
    origin,
    path,
    query: search.slice(1),
    pathArguments: [],
    encodedSlashes: false,
  };
}
