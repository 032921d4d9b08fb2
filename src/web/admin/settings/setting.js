/** One setting: its name and meaning, who changed it last, and its field with the unit. */
import { CopyText, Time } from '../../shared/ui.js';
import { html } from '../../vendor/preact.js';
import { addressOfAccount, called } from '../who.js';
import { fieldText, meaningOf, readField, valueText } from './values.js';

/** `typed`: what its field holds instead of the value; undefined without a change. `trouble`: why it was not saved. */
export function Setting({ item, typed, trouble, canChange, onType, onOverwrite }) {
  const id = `setting-${item.id}`;
  const read = typed === undefined ? { value: item.value } : readField(item, typed);
  const isDefault = read.value === item.default;
  return html`<div class="setting" id=${`${id}-row`}>
    <div>
      <h3><label for=${id}>${item.title}</label>${typed !== undefined ? html` <span class="tag warn">not saved</span>` : item.value !== item.default && html` <span class="tag accent">changed</span>`}</h3>
      <p class="soft small">${item.summary}</p>
      <p class="by"><${CopyText} text=${item.name} shown=${item.name} what="name" /> <${LastChange} item=${item} /></p>
    </div>
    <div>
      <${Field} id=${id} item=${item} typed=${typed} fault=${trouble?.fault} disabled=${!canChange} onType=${onType} />
      <p class="hint" id=${`${id}-hint`}>${[read.value !== undefined && meaningOf(item, read.value), item.min !== null && `${valueText(item, item.min)} to ${valueText(item, item.max)}`, `default ${valueText(item, item.default)}`].filter(Boolean).join(' · ')}${canChange && !isDefault && html` <button type="button" class="plain" onClick=${() => onType(fieldText(item, item.default))}>Reset<span class="hidden"> ${item.title}</span></button>`}</p>
      ${trouble?.fault !== undefined && html`<p class="fault" role="alert" id=${`${id}-fault`}>${trouble.fault}</p>`}
      ${trouble?.other !== undefined && html`<${Conflict} item=${item} other=${trouble.other} onKeep=${() => onType(undefined)} onOverwrite=${onOverwrite} />`}
    </div>
  </div>`;
}

function LastChange({ item: { changed, value, default: standard } }) {
  if (changed !== null)
    return html`<span>Changed by <a href=${addressOfAccount(changed.userId)}>${called({ id: changed.userId, nickname: changed.nickname })}</a> <${Time} of=${changed.utc} /></span>`;
  return value !== standard && html`<span>From the configuration</span>`;
}

/** Digits are grouped once the field is left. */
function Field({ id, item, typed, fault, disabled, onType }) {
  const text = typed ?? fieldText(item, item.value);
  const read = readField(item, text);
  const common = {
    id,
    disabled,
    'aria-describedby': `${id}-hint${fault === undefined ? '' : ` ${id}-fault`}`,
    'aria-invalid': fault !== undefined,
  };
  // A text that equals the value is no change.
  const type = (next) => onType(readField(item, next).value === item.value ? undefined : next);
  if (item.type === 'flag')
    return html`<div class="switch"><input ...${common} type="checkbox" checked=${text === '1'} onChange=${(event) => type(event.currentTarget.checked ? '1' : '0')} /><span aria-hidden="true">${text === '1' ? 'On' : 'Off'}</span></div>`;
  if (item.type === 'text')
    return html`<input ...${common} value=${text} autocomplete="off" spellcheck=${false} onInput=${(event) => type(event.currentTarget.value)} />`;
  const group = () => {
    const { value } = read;
    const shown = value === undefined ? text : fieldText(item, value);
    if (shown !== text) type(shown);
  };
  return html`<div class="measure"><input ...${common} value=${text} inputmode="numeric" autocomplete="off" onInput=${(event) => type(event.currentTarget.value)} onBlur=${group} />${item.unit !== '' && html`<span>${item.unit}</span>`}</div>`;
}

function Conflict({ item, other, onKeep, onOverwrite }) {
  const who =
    other.changed === null ? 'another admin' : called({ id: other.changed.userId, ...other.changed });
  return html`<div class="note warn below" role="alert"><p>${who} set it to ${valueText(item, other.value)} after you opened this page.</p>
    <div class="row"><button type="button" onClick=${onKeep}>Keep ${valueText(item, other.value)}</button><button type="button" class="danger" onClick=${onOverwrite}>Overwrite</button></div></div>`;
}
