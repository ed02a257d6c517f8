import type { CompletionSource } from '../../editor/completion.ts';
import { html, type View } from '../../html.ts';
import { FieldControl } from './field_control.ts';
import { mainSection, type FormField } from './form_fields.ts';
import type { Input, Inputs } from './form_values.ts';

/** Sections that few exports need are closed until one of their fields is set or wrong. */
const closedSections = new Set(['Schedule', 'More']);
const order = [mainSection, 'Bucket', 'Credentials', 'Files', 'Rows', 'Schedule', 'More'];

/** The fields of a form, in the sections that their schema names. */
export function FormSections({
  fields,
  inputs,
  errors,
  source,
  storedSecrets,
  onInput,
}: {
  readonly fields: readonly FormField[];
  readonly inputs: Inputs;
  readonly errors: Readonly<Record<string, string>>;
  readonly source: CompletionSource | null;
  readonly storedSecrets: boolean;
  readonly onInput: (field: FormField, input: Input) => void;
}): View {
  const sections = [...Map.groupBy(fields, ({ section }) => section)].sort(
    ([one], [other]) => rank(one) - rank(other),
  );
  return html`${sections.map(([section, members]) => {
    const controls = members.map(
      (field) =>
        html`<${FieldControl}
          key=${field.attr}
          field=${field}
          input=${inputs[field.attr] ?? ''}
          error=${errors[field.attr]}
          source=${source}
          hasStored=${storedSecrets && field.control === 'secret'}
          onInput=${(input: Input) => onInput(field, input)}
        />`,
    );
    if (!closedSections.has(section))
      return html`<fieldset class="form-section card" key=${section}>
        <legend><h2>${section}</h2></legend>
        <div class="form-fields">${controls}</div>
      </fieldset>`;
    const isWrong = members.some(({ attr }) => errors[attr] !== undefined);
    return html`<details class="form-section card" key=${section} open=${isWrong ? true : undefined}>
      <summary>
        <h2>${section}</h2>
        <span class="muted">${members.map(({ label }) => label).join(', ')}</span>
      </summary>
      <div class="form-fields">${controls}</div>
    </details>`;
  })}`;
}

/** Sections that a schema adds come last. */
const rank = (section: string): number => {
  const index = order.indexOf(section);
  return index === -1 ? order.length : index;
};
