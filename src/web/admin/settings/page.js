/** Runtime settings in their groups, effective immediately, and the shared bounds with their current use. */
import { get, post, sentenceOf } from '../../shared/api.js';
import { Act, Empty, Loaded, notify, useLoad } from '../../shared/ui.js';
import { html, useState } from '../../vendor/preact.js';
import { useGuard } from '../leaving.js';
import { Bounds } from './bounds.js';
import { Setting } from './setting.js';
import { readField } from './values.js';

const SETTINGS = '/ProxyAdmin/api/settings';

export function SettingsPage({ nodes, role, query }) {
  const settings = useLoad(() => get(SETTINGS), []);
  return html`<p class="soft">Changes apply at once, survive restarts and override the configuration file.</p>
    <div><${Loaded} of=${settings}>${(list) => html`<${Groups} list=${list} reload=${settings.reload} canChange=${role === 'admin'} query=${query} />`}<//></div>
    <${Bounds} areSeveral=${nodes.length > 0} />`;
}

const counted = (count, one, several) => `${count} ${count === 1 ? one : several}`;
const without = (held, names) =>
  Object.fromEntries(Object.entries(held).filter(([name]) => !names.includes(name)));

/** Input stays until it is saved or undone, also where a filter hides its setting. */
function Groups({ list, reload, canChange, query }) {
  const [search, setSearch] = useState(query.get('search') ?? '');
  const [changedOnly, setChangedOnly] = useState(false);
  /** Texts that were typed, and why they were not saved, by name. */
  const [typed, setTyped] = useState({});
  const [troubles, setTroubles] = useState({});
  const edited = list.filter(({ name }) => typed[name] !== undefined);
  useGuard(
    edited.length === 0
      ? undefined
      : `${counted(edited.length, 'setting is', 'settings are')} not saved: ${edited.map(({ title }) => title).join(', ')}.`,
  );
  const forget = (names) => {
    setTyped((held) => without(held, names));
    setTroubles((held) => without(held, names));
  };
  const type = ({ name }, text) => {
    forget([name]);
    if (text !== undefined) setTyped((held) => ({ ...held, [name]: text }));
    else if (troubles[name]?.other !== undefined) void reload();
  };
  const save = async (items) => {
    const { saved, failed } = await saveAll(items, typed);
    // Before the input is dropped, so that the old value is never shown again.
    if (saved.length > 0) await reload();
    forget(saved.map(({ name }) => name));
    setTroubles((held) => ({ ...held, ...failed }));
    const [first] = saved;
    if (first !== undefined)
      notify(saved.length === 1 ? `${first.title} is changed.` : `${saved.length} settings are changed.`);
    const [refused] = items.filter(({ name }) => failed[name] !== undefined);
    if (refused !== undefined) document.getElementById(`setting-${refused.id}`)?.focus();
  };
  const word = search.trim().toLowerCase();
  const isShown = ({ name, title, group, summary, value, default: standard }) =>
    `${name} ${title} ${group} ${summary}`.toLowerCase().includes(word) &&
    (!changedOnly || value !== standard || typed[name] !== undefined);
  const shown = list.filter(isShown);
  const groups = [...new Set(shown.map(({ group }) => group))];
  return html`<div class="settings"><div class="tools">
      <input type="search" aria-label="Search settings" placeholder="Search settings" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} />
      <label class="check"><input type="checkbox" checked=${changedOnly} onChange=${(event) => setChangedOnly(event.currentTarget.checked)} /> Changed only</label>
      <span class="small soft push" role="status">${shown.length === list.length ? counted(list.length, 'setting', 'settings') : `${shown.length} of ${list.length} settings`}</span>
    </div>
    ${
      shown.length === 0 &&
      html`<section class="card"><${Empty} icon="settings"><p>${word === '' ? 'Every setting has its default.' : 'No setting matches.'}</p><button type="button" onClick=${() => {
        setSearch('');
        setChangedOnly(false);
      }}>Show all</button><//></section>`
    }
    ${groups.map(
      (
        group,
      ) => html`<section key=${group} class="card" aria-label=${group}><header><h2>${group}</h2></header>
        ${shown
          .filter((item) => item.group === group)
          .map(
            (item) =>
              html`<${Setting} key=${item.name} item=${item} typed=${typed[item.name]} trouble=${troubles[item.name]} canChange=${canChange} onType=${(text) => type(item, text)} onOverwrite=${() => save([{ ...item, value: troubles[item.name].other.value }])} />`,
          )}
      </section>`,
    )}
    ${
      edited.length > 0 &&
      html`<div class="unsaved" role="region" aria-label="Changes that are not saved"><span>${counted(edited.length, 'change', 'changes')} not saved</span>
        <div class="row"><button type="button" onClick=${() => forget(edited.map(({ name }) => name))}>Undo</button><${Act} kind="primary" run=${() => save(edited)}>Save<//></div></div>`
    }</div>`;
}

/**
 * Saves what was typed for `items`, one by one. `failed`, by name: the fault, or the setting as another admin has changed it
 * since it was read.
 */
async function saveAll(items, typed) {
  const saved = [];
  const failed = {};
  const now = new Map((await get(SETTINGS)).map((item) => [item.name, item]));
  for (const item of items) {
    const { value, fault } = readField(item, typed[item.name]);
    const other = now.get(item.name);
    if (fault !== undefined) failed[item.name] = { fault };
    else if (other.value !== item.value) failed[item.name] = { other };
    else {
      try {
        await post(SETTINGS, { name: item.name, value });
        saved.push(item);
      } catch (error) {
        failed[item.name] = { fault: sentenceOf(error) };
      }
    }
  }
  return { saved, failed };
}
