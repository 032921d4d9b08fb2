/**
 * The served catalog: compiled built-in and configured rows, with the answers of tools/list and resources/list as JSON for
 * each class of caller. A reload replaces the whole catalog or nothing.
 */
import {
  type AccessPolicy,
  CALLER_CLASSES,
  type CallerClass,
  listsTool,
  mayCallTool,
  mayReadResource,
} from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { CompiledSchema, Fault } from '../../domain/schema.ts';
import type { RouteContext } from '../http/table/route.ts';
import {
  type Endpoint,
  type ModuleAddresses,
  parseEndpoint,
  plainUrl,
  type Target,
} from '../http-client/endpoint.ts';
import { type HeaderParam, headerParamsOf } from './header-params.ts';
import { inputCheck, isObject, type SchemaOrigin } from './input-schema.ts';
import { RepeatedResult } from './rpc.ts';
import {
  askedTools,
  type LaterNames,
  type ProfileRow,
  profileFaults,
  profileSubset,
  type Subset,
} from './subsets.ts';
import {
  argumentFaults,
  type ResourceRow,
  resourceFaults,
  rowPath,
  TIMEOUT_MS,
  type ToolRow,
  toolFaults,
  within,
} from './tool.ts';
import { Offers, type PersonalUpstream, upstreamEndpoint } from './upstreams/offers.ts';
import type { Offer, OfferKind, UpstreamTool } from './upstreams/types.ts';

/** `gateway:/…` endpoints are served by the gateway itself; only built-in rows have them. */
const GATEWAY_ENDPOINT = /^gateway:\//;

export interface ToolEntry {
  readonly name: string;
  readonly row: ToolRow;
  readonly callers: ReadonlySet<CallerClass>;
  readonly arguments: CompiledSchema<unknown>;
  /** Null for a row of the gateway itself. Undefined for a built-in row whose module is not configured. */
  readonly endpoint: Endpoint | null | undefined;
  /** The address, unless arguments change it. */
  readonly url: Target | undefined;
  readonly timeoutMs: number;
  /** Tool of another MCP server. */
  readonly upstream: UpstreamTool | undefined;
  /** Arguments that clients of 2026-07-28 repeat in headers. */
  readonly headerParams: readonly HeaderParam[];
}

export interface ResourceEntry {
  readonly uri: string;
  readonly row: ResourceRow;
  readonly readers: ReadonlySet<CallerClass>;
  readonly endpoint: Endpoint | null | undefined;
  readonly url: Target | undefined;
  readonly mimeType: string;
}

/** The catalog as one address shows it. */
export interface CatalogView extends Subset {
  /** The result of tools/list. */
  readonly toolLists: Readonly<Record<CallerClass, RepeatedResult>>;
  /** The result of resources/list. */
  readonly resourceLists: Readonly<Record<CallerClass, RepeatedResult>>;
  /** The results of resources/templates/list and of prompts/list. */
  readonly templateLists: Readonly<Record<CallerClass, RepeatedResult>>;
  readonly promptLists: Readonly<Record<CallerClass, RepeatedResult>>;
  /** Items of tools/list. */
  toolCount(caller: CallerClass): number;
  /** Title of a profile. */
  readonly title: string | undefined;
  readonly instructions: string | undefined;
}

export interface Catalog {
  readonly tools: ReadonlyMap<string, ToolEntry>;
  readonly resources: ReadonlyMap<string, ResourceEntry>;
  /** Prompts, resources and templates of other MCP servers. */
  readonly offers: Offers;
  /** Every row. */
  readonly whole: CatalogView;
  /** `McpProfiles` by name. */
  readonly profiles: ReadonlyMap<string, CatalogView>;
  /** The result of tools/list for the tools that one request asks for. It is not kept. */
  toolListOf(caller: CallerClass, hasTool: (name: string) => boolean): RepeatedResult;
  /** A list with one person's own items behind the others. It is not kept. */
  listWith(kind: OfferKind, caller: CallerClass, subset: Subset, own: readonly Offer[]): RepeatedResult;
  /** The policy that the catalog was built with. */
  readonly policy: AccessPolicy;
}

export interface BuiltInRows {
  readonly tools: Readonly<Record<string, ToolRow>>;
  readonly resources: Readonly<Record<string, ResourceRow>>;
}

/** `Config.McpTools`, `Config.McpResources` and `McpProfiles` as written in the file. */
export interface ConfiguredRows {
  readonly tools: unknown;
  readonly resources: unknown;
  readonly profiles?: unknown;
  /** Tools of `McpServers` that are known now. One whose name a row has is left out. */
  readonly upstream?: readonly UpstreamTool[];
  /** The same of their prompts, resources and templates. */
  readonly offers?: readonly Offer[];
  /** Servers at which each caller is someone else. */
  readonly personal?: readonly PersonalUpstream[];
  /** Names that those servers may list later: a profile may name them. */
  readonly later?: LaterNames;
}

const NOTHING_LATER: LaterNames = { tools: [], resources: [] };

export type CatalogResult =
  | { readonly ok: true; readonly catalog: Catalog }
  | { readonly ok: false; readonly faults: Fault[] };

/** Builds a catalog, or returns every fault of the configured rows with its path (`/McpTools/<name>/…`). */
export function loadCatalog(
  builtIn: BuiltInRows,
  configured: ConfiguredRows,
  modules: ModuleAddresses,
  policy: AccessPolicy,
): CatalogResult {
  const faults: Fault[] = [];
  const tools = new Map<string, ToolEntry>();
  const resources = new Map<string, ResourceEntry>();
  for (const [name, row] of Object.entries(builtIn.tools))
    tools.set(name, toolEntry(name, row, builtInEndpoint(row, modules), policy, 'own'));
  for (const [uri, row] of Object.entries(builtIn.resources))
    resources.set(uri, resourceEntry(uri, row, builtInEndpoint(row, modules), policy));
  for (const [name, row] of rowsOf<ToolRow>('McpTools', configured.tools, faults)) {
    const path = rowPath('McpTools', name);
    const found = toolFaults(name, row);
    if (tools.has(name)) found.push({ path: '', message: 'is the name of a built-in tool' });
    const endpoint = configuredEndpoint(row, modules, policy, found);
    for (const argument of endpoint?.pathArguments ?? [])
      found.push(...argumentFaults(row, '/endpoint', argument));
    faults.push(...found.map((fault) => within(path, fault)));
    if (found.length === 0) tools.set(name, toolEntry(name, row, endpoint, policy, 'outside'));
  }
  for (const [uri, row] of rowsOf<ResourceRow>('McpResources', configured.resources, faults)) {
    const path = rowPath('McpResources', uri);
    const found = resourceFaults(uri, row);
    if (resources.has(uri)) found.push({ path: '', message: 'is the URI of a built-in resource' });
    const endpoint = configuredEndpoint(row, modules, policy, found);
    if (endpoint !== undefined && endpoint.pathArguments.length > 0)
      found.push({ path: '/endpoint', message: 'has a path placeholder, and a resource has no arguments' });
    faults.push(...found.map((fault) => within(path, fault)));
    if (found.length === 0) resources.set(uri, resourceEntry(uri, row, endpoint, policy));
  }
  for (const tool of configured.upstream ?? [])
    if (!tools.has(tool.name)) tools.set(tool.name, upstreamEntry(tool, policy));
  const offers = new Offers(configured.offers ?? [], policy, configured.personal);
  faults.push(
    ...profileFaults(configured.profiles, tools.keys(), resources.keys(), configured.later ?? NOTHING_LATER),
  );
  if (faults.length > 0) return { ok: false, faults };
  const profiles = Object.entries((configured.profiles ?? {}) as Record<string, ProfileRow>);
  return { ok: true, catalog: assemble(tools, resources, offers, profiles, policy) };
}

/** Returns the catalog as the address of a request shows it. Throws `NotFound` for a profile that is not configured. */
export function viewAt(catalog: Catalog, { params }: RouteContext): CatalogView {
  const name = params['profile'];
  if (name === undefined) return catalog.whole;
  const profile = catalog.profiles.get(name);
  if (profile === undefined) throw new GatewayError('NotFound', 'there is no such profile');
  return profile;
}

/** The tools that a request sees: those of its address that its query asks for. List and call decide by this alone. */
interface ShownTools {
  has(name: string): boolean;
  listFor(caller: CallerClass): RepeatedResult;
}

/** Throws `NotFound` as `viewAt`. */
export function shownTools(catalog: Catalog, context: RouteContext): ShownTools {
  const view = viewAt(catalog, context);
  const asked = askedTools(context);
  if (asked === undefined) return { has: view.hasTool, listFor: (caller) => view.toolLists[caller] };
  const has = (name: string) => view.hasTool(name) && asked(name);
  return { has, listFor: (caller) => catalog.toolListOf(caller, has) };
}

/** The catalog in use. A reader of `current` sees one whole catalog, before a reload or after it. */
export class LiveCatalog {
  #current: Catalog;
  readonly #listeners: ((before: Catalog, after: Catalog) => void)[] = [];

  constructor(first: Catalog) {
    this.#current = first;
  }

  get current(): Catalog {
    return this.#current;
  }

  /** Replaces the catalog when the new rows have no fault. */
  reload(result: CatalogResult): readonly Fault[] {
    if (!result.ok) return result.faults;
    const before = this.#current;
    this.#current = result.catalog;
    for (const listener of this.#listeners) listener(before, result.catalog);
    return [];
  }

  /** Called after each reload that replaced the catalog. */
  onChange(listener: (before: Catalog, after: Catalog) => void): void {
    this.#listeners.push(listener);
  }
}

function rowsOf<Row>(section: 'McpTools' | 'McpResources', rows: unknown, faults: Fault[]): [string, Row][] {
  if (rows === undefined) return [];
  // The checks below validate each row before anything relies on its type.
  if (isObject(rows)) return Object.entries(rows) as [string, Row][];
  faults.push({ path: `/${section}`, message: 'must be an object' });
  return [];
}

function builtInEndpoint(row: { endpoint: string }, modules: ModuleAddresses): Endpoint | null | undefined {
  if (GATEWAY_ENDPOINT.test(row.endpoint)) return null;
  const parsed = parseEndpoint(row.endpoint, modules);
  return parsed.ok ? parsed.endpoint : undefined;
}

function configuredEndpoint(
  row: unknown,
  modules: ModuleAddresses,
  { encodedSlashes }: AccessPolicy,
  faults: Fault[],
): Endpoint | undefined {
  const reference = isObject(row) ? row['endpoint'] : undefined;
  // The schema reports a missing one.
  if (typeof reference !== 'string' || reference === '') return undefined;
  const parsed = parseEndpoint(reference, modules, encodedSlashes);
  if (parsed.ok) return parsed.endpoint;
  faults.push({ path: '/endpoint', message: parsed.fault });
  return undefined;
}

function toolEntry(
  name: string,
  row: ToolRow,
  endpoint: ToolEntry['endpoint'],
  policy: AccessPolicy,
  origin: SchemaOrigin,
  upstream?: UpstreamTool,
): ToolEntry {
  return {
    name,
    row,
    callers: new Set(CALLER_CLASSES.filter((caller) => mayCallTool(row, caller, policy))),
    arguments: inputCheck(name, row.inputSchema, origin),
    endpoint,
    url: plainUrl(endpoint),
    timeoutMs: row.timeoutMs ?? TIMEOUT_MS,
    upstream,
    headerParams: headerParamsOf(row.inputSchema),
  };
}

/** The breaker is that of the tool: one that fails says nothing about the others. */
function upstreamEntry(tool: UpstreamTool, policy: AccessPolicy): ToolEntry {
  const { name, row, server } = tool;
  const endpoint = upstreamEndpoint(server, row.endpoint);
  return toolEntry(name, row, endpoint, policy, 'outside', tool);
}

function resourceEntry(
  uri: string,
  row: ResourceRow,
  endpoint: ResourceEntry['endpoint'],
  policy: AccessPolicy,
): ResourceEntry {
  const readers = new Set(CALLER_CLASSES.filter((caller) => mayReadResource(row, caller, policy)));
  const url = plainUrl(endpoint, row.queryString);
  return { uri, row, readers, endpoint, url, mimeType: row.mimeType ?? 'application/json' };
}

function assemble(
  tools: ReadonlyMap<string, ToolEntry>,
  resources: ReadonlyMap<string, ResourceEntry>,
  offers: Offers,
  profiles: readonly (readonly [name: string, row: ProfileRow])[],
  policy: AccessPolicy,
): Catalog {
  const toolJson = [...tools.values()].map((entry) => ({ entry, json: JSON.stringify(toolItem(entry)) }));
  const resourceJson = [...resources.values()].map((entry) => ({
    entry,
    json: JSON.stringify(resourceItem(entry)),
  }));
  const toolsOf = (caller: CallerClass, hasTool: Subset['hasTool']) =>
    toolJson.filter(({ entry }) => listsTool(entry.row, caller, policy) && hasTool(entry.name));
  const toolsText = (caller: CallerClass, hasTool: Subset['hasTool']) => {
    const shown = toolsOf(caller, hasTool).map(({ json }) => json);
    return `{"tools":[${shown.join(',')}]}`;
  };
  const resourcesText = (caller: CallerClass, subset: Subset, own: readonly string[] = []) => {
    const shown = resourceJson.filter(
      ({ entry }) => mayReadResource(entry.row, caller, policy) && subset.hasResource(entry.uri),
    );
    const items = [...shown.map(({ json }) => json), ...offers.itemsFor('resources', caller, subset), ...own];
    return `{"resources":[${items.join(',')}]}`;
  };
  const offersText = (kind: OfferKind, caller: CallerClass, subset: Subset, own: readonly string[] = []) =>
    `{"${kind}":[${[...offers.itemsFor(kind, caller, subset), ...own].join(',')}]}`;
  const viewOf = (subset: Subset, { title, instructions }: ProfileRow = {}): CatalogView => ({
    ...subset,
    toolLists: perClass((caller) => toolsText(caller, subset.hasTool)),
    resourceLists: perClass((caller) => resourcesText(caller, subset)),
    templateLists: perClass((caller) => offersText('resourceTemplates', caller, subset)),
    promptLists: perClass((caller) => offersText('prompts', caller, subset)),
    toolCount: (caller) => toolsOf(caller, subset.hasTool).length,
    title,
    instructions,
  });
  return {
    tools,
    resources,
    offers,
    whole: viewOf({ hasTool: () => true, hasResource: () => true }),
    profiles: new Map(profiles.map(([name, row]) => [name, viewOf(profileSubset(row), row)])),
    toolListOf: (caller, hasTool) => new RepeatedResult(toolsText(caller, hasTool)),
    listWith(kind, caller, subset, own) {
      const items = new Offers(own, policy).itemsFor(kind, caller, subset);
      const text =
        kind === 'resources' ? resourcesText(caller, subset, items) : offersText(kind, caller, subset, items);
      return new RepeatedResult(text);
    },
    policy,
  };
}

function perClass(listOf: (caller: CallerClass) => string): Record<CallerClass, RepeatedResult> {
  const lists = CALLER_CLASSES.map((caller) => [caller, new RepeatedResult(listOf(caller))] as const);
  return Object.fromEntries(lists) as Record<CallerClass, RepeatedResult>;
}

/** An item of tools/list: spec 2.4, with title and annotations where the row has them. Absent ones are left out. */
/** An item of tools/list. */
export function toolItem({ name, row }: ToolEntry): object {
  const { title, description, inputSchema, outputSchema, annotations } = row;
  return { name, title, description, inputSchema, outputSchema, annotations };
}

/** An item of resources/list. Clients require `uri` and `name`, and reject null members. */
function resourceItem({ uri, row, mimeType }: ResourceEntry): object {
  return { uri, name: row.name, description: row.description, mimeType };
}
