import { Button } from '../../components/button.ts';
import { html, type View } from '../../html.ts';
import type { FormField } from './form_fields.ts';
import type { Input } from './form_values.ts';

type ObjectRow = Readonly<Record<string, string>>;

/** Objects, such as filters: one row of controls for each. */
export function ObjectRows({
  field,
  rows,
  onInput,
  error,
}: {
  readonly field: FormField;
  readonly rows: readonly ObjectRow[];
  readonly onInput: (rows: Input) => void;
  readonly error: string | undefined;
}): View {
  const change = (index: number, attr: string, value: string) =>
    onInput(rows.map((row, at) => (at === index ? { ...row, [attr]: value } : row)));
  const empty = Object.fromEntries(field.itemFields.map((one) => [one.attr, firstChoice(one)]));
  return html`<fieldset class="object-rows ${error ? 'field-invalid' : ''}">
    <legend>${field.label}</legend>
    ${field.hint && html`<p class="field-hint">${field.hint}</p>`}
    ${rows.map(
      (row, index) =>
        html`<div class="object-row" key=${index}>
          ${field.itemFields.map(
            (one) =>
              html`<${RowControl}
                key=${one.attr}
                field=${one}
                value=${row[one.attr] ?? ''}
                onChange=${(value: string) => change(index, one.attr, value)}
              />`,
          )}
          <${Button}
            kind="quiet"
            label="Remove row ${index + 1} of ${field.label}"
            onClick=${() => onInput(rows.filter((_, at) => at !== index))}
            >Remove<//
          >
        </div>`,
    )}
    ${error && html`<p class="field-error">${error}</p>`}
    <div>
      <${Button} label="Add to ${field.label.toLowerCase()}" onClick=${() => onInput([...rows, empty])}
        >Add<//
      >
    </div>
  </fieldset>`;
}

const firstChoice = (field: FormField): string =>
  typeof field.default === 'string' ? field.default : (field.choices[0] ?? '');

function RowControl({
  field,
  value,
  onChange,
}: {
  readonly field: FormField;
  readonly value: string;
  readonly onChange: (value: string) => void;
}): View {
  const read = (event: Event) => onChange((event.currentTarget as HTMLInputElement).value);
  if (field.control === 'select')
    return html`<select class="input" aria-label=${field.label} value=${value} onChange=${read}>
      ${field.choices.map(
        (choice) =>
          html`<option key=${choice} value=${choice} selected=${choice === value}>${choice}</option>`,
      )}
    </select>`;
  return html`<input
    class="input"
    aria-label=${field.label}
    placeholder=${field.label.toLowerCase()}
    value=${value}
    spellcheck=${false}
    autocomplete="off"
    onInput=${read}
  />`;
}
