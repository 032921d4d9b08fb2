/** A tool as a form: fields from its schema, the call, the answer as an agent receives it, and the request to copy. */

import { html, useState } from '../vendor/preact.js';
import { sentenceOf } from './api.js';
import { pretty, rpc } from './mcp-client.js';
import { Act, Confirm, Copy } from './ui.js';

/** Text whose parts in backticks are code. */
export const withCode = (text) =>
  text.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part));

/**
 * The form of a tool, its call in the session of this tab, the answer, and the request to copy. `tool`: an item of
 * tools/list.
 */
export function ToolForm({ tool, disabled }) {
  const fields = Object.entries(tool.inputSchema.properties ?? {});
  const required = new Set(tool.inputSchema.required ?? []);
  const [values, setValues] = useState({});
  const [answer, setAnswer] = useState(undefined);
  const [asked, setAsked] = useState(undefined);
  const marks = tool.annotations ?? {};
  const kind = marks.destructiveHint ? 'danger' : 'primary';
  // The arguments are read once, so that the shown request is the one that is sent.
  const begin = async () => {
    const request = { name: tool.name, arguments: argumentsOf(fields, values) };
    if (marks.readOnlyHint === true) await run(request);
    else setAsked(request);
  };
  const run = async (request) => {
    const startedMs = performance.now();
    try {
      const result = await rpc('tools/call', request);
      setAnswer({
        text: pretty(result.content?.[0]?.text ?? ''),
        failed: result.isError === true,
        elapsedMs: performance.now() - startedMs,
      });
    } catch (error) {
      setAnswer({ text: sentenceOf(error), failed: true, elapsedMs: performance.now() - startedMs });
    }
  };
  const copied = () => ({ name: tool.name, arguments: argumentsOf(fields, values) });
  return html`<form class="stack" onSubmit=${(event) => event.preventDefault()}>
      ${fields.map(([name, schema]) => html`<${Field} key=${name} name=${name} schema=${schema} required=${required.has(name)} value=${values[name] ?? ''} onChange=${(value) => setValues({ ...values, [name]: value })} />`)}
      <div class="row"><${Act} kind=${kind} disabled=${disabled || fields.some(([name]) => required.has(name) && (values[name] ?? '') === '')} run=${begin}>Call ${tool.name}<//><${Copy} label="Copy as curl" text=${curlOf(copied())} /><${Copy} label="Copy as MCP request" text=${JSON.stringify(messageOf(copied()), null, 2)} /></div>
    </form>
    <${Confirm} title=${`Call ${tool.name}?`} open=${asked !== undefined} onClose=${() => setAsked(undefined)} confirm="Call it" kind=${kind} run=${() => run(asked)}>
      <p>${effectOf(marks)} This request is sent as <code>tools/call</code>:</p>
      <pre tabindex="0" role="region" aria-label="Request">${JSON.stringify(asked, null, 2)}</pre>
    <//>
    ${answer !== undefined && html`<div class="answer" role="status"><p class="row"><span class=${`tag ${answer.failed ? 'bad' : 'good'}`}>${answer.failed ? 'refused' : 'answered'}</span><span class="soft small">${answer.elapsedMs.toFixed(0)} ms</span></p><pre tabindex="0" role="region" aria-label="Answer">${answer.text}</pre></div>`}`;
}

const messageOf = (params) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });

/** Writes the call for a shell, which knows the session id as `SESSION`. */
function curlOf(params) {
  const body = JSON.stringify(messageOf(params)).replaceAll("'", "'\\''");
  return [
    `curl ${location.origin}/mcp`,
    '-H "Authorization: Bearer $SESSION"',
    "-H 'Content-Type: application/json'",
    `-d '${body}'`,
  ].join(' \\\n  ');
}

/** The effect of a call by the annotations of the tool, with the defaults of MCP. */
function effectOf({ destructiveHint = true, idempotentHint = false }) {
  if (destructiveHint) return 'This tool can make irreversible changes.';
  return idempotentHint
    ? 'This tool makes a change. Calling it again has no further effect.'
    : 'This tool adds data. Each call adds it again.';
}

function Field({ name, schema, required, value, onChange }) {
  const type = kindOf(schema);
  const hint = [
    schema.description,
    schema.examples?.length > 0 ? `For example ${JSON.stringify(schema.examples[0])}.` : undefined,
  ]
    .filter(Boolean)
    .join(' ');
  const common = { id: `field-${name}`, 'aria-describedby': `hint-${name}`, required, value };
  const input = (event) => onChange(event.currentTarget.value);
  const choices = type === 'boolean' ? ['true', 'false'] : schema.enum;
  return html`<div>
    <label for=${`field-${name}`}>${name}${!required && html` <span class="soft">(optional)</span>`}</label>
    ${
      choices !== undefined
        ? html`<select ...${common} onChange=${input}><option value=""></option>${choices.map((choice) => html`<option value=${String(choice)}>${String(choice)}</option>`)}</select>`
        : type === 'json'
          ? html`<textarea ...${common} onInput=${input}></textarea>`
          : html`<input ...${common} inputmode=${type === 'number' ? 'decimal' : undefined} onInput=${input} />`
    }
    <p class="hint" id=${`hint-${name}`}>${withCode(hint)}</p>
  </div>`;
}

/** The kind of input of a value: text, number, boolean or JSON. */
function kindOf(schema) {
  const types = [schema.type, ...(schema.anyOf ?? []).map(({ type }) => type)].flat();
  if (types.includes('string')) return 'text';
  if (types.includes('integer') || types.includes('number')) return 'number';
  return types.includes('boolean') ? 'boolean' : 'json';
}

/** Omits empty fields. Values that do not parse are sent as text, so that the gateway names the fault. */
function argumentsOf(fields, values) {
  const sent = {};
  for (const [name, schema] of fields) {
    const value = values[name] ?? '';
    if (value === '') continue;
    sent[name] = kindOf(schema) === 'text' ? value : parsed(value);
  }
  return sent;
}

function parsed(value) {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
