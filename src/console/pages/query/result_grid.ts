import { useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { ResultTable } from '../../../client/result_table.ts';
import { timezone } from '../../api/client.ts';
import { Button, CopyBlock } from '../../components/actions.ts';
import { type Column, Table } from '../../components/table.ts';
import { html, type View } from '../../html.ts';
import { cellText, sortedBy, valueKindOf, wholeText, zoneOfType } from './result_values.ts';

type NumberedRow = readonly [number: number, row: readonly unknown[]];

/** Rows that are drawn at once: thousands of cells make a browser slow. */
const pageRows = 200;
/** Longer values are cut, so that a row is one line; a panel shows the whole. */
const maxShown = 60;

interface Sorting {
  readonly column: number;
  readonly direction: 'ascending' | 'descending';
}

/** A value in the panel: what it is, and the button that opened it. */
interface OpenedValue {
  readonly title: string;
  readonly value: unknown;
  readonly opener: HTMLElement;
}

/** The rows of a result, each in one line. Long values open in a panel beside them. */
export function ResultGrid({ result }: { readonly result: ResultTable }): View {
  const shown = useSignal(pageRows);
  const sorting = useSignal<Sorting | null>(null);
  const opened = useSignal<OpenedValue | null>(null);
  const { column, direction } = sorting.value ?? {};
  const sorted = useMemo(
    () =>
      column === undefined || direction === undefined ? result.results : sortedBy(result, column, direction),
    [result, column, direction],
  );
  const close = () => {
    opened.value?.opener.focus();
    opened.value = null;
  };
  const columns = result.types.map(([name, type], index): Column<NumberedRow> => {
    const header = headerOf(result.types, index);
    return {
      header,
      align: valueKindOf(type) === 'number' ? 'right' : 'left',
      render: ([number, row]) =>
        html`<${Value}
          value=${row[index]}
          type=${type}
          label="${name}, row ${number + 1}"
          onOpen=${(opener: HTMLElement) => {
            opened.value = { title: `${name}, row ${number + 1}`, value: row[index], opener };
          }}
        />`,
      sorted: index === column ? direction : undefined,
      onSort: () => {
        const isAscending = index === column && direction === 'ascending';
        sorting.value = { column: index, direction: isAscending ? 'descending' : 'ascending' };
      },
    };
  });
  const rows = sorted.slice(0, shown.value).map((row, number): NumberedRow => [number, row]);
  const hidden = result.results.length - rows.length;
  return html`<div class="query-result">
    <div class="result-and-panel ${opened.value ? 'result-opened' : ''}">
      <${Table}
        caption="Result of the query"
        columns=${columns}
        rows=${rows}
        rowKey=${([number]: NumberedRow) => String(number)}
        isWide=${true}
      />
      ${opened.value && html`<${ValuePanel} key=${opened.value.title} opened=${opened.value} onClose=${close} />`}
    </div>
    ${
      hidden > 0 &&
      html`<${Button} onClick=${() => (shown.value += pageRows)}
        >Show ${Math.min(pageRows, hidden)} more of ${hidden}<//
      >`
    }
  </div>`;
}

/** Columns can have the same name; their headers cannot. Times name their zone. */
function headerOf(types: ResultTable['types'], index: number): string {
  const [name = '', type = ''] = types[index] ?? [];
  const earlier = types.slice(0, index).filter(([other]) => other === name).length;
  const distinct = earlier === 0 ? name : `${name} (${earlier + 1})`;
  const isTime = valueKindOf(type) === 'time' && type.includes('DateTime');
  return isTime ? `${distinct} (${zoneOfType(type) ?? timezone.value})` : distinct;
}

/** A value in its cell, or the start of a long one as a button that opens it. */
function Value({
  value,
  type,
  label,
  onOpen,
}: {
  readonly value: unknown;
  readonly type: string;
  readonly label: string;
  readonly onOpen: (opener: HTMLElement) => void;
}): View {
  if (value === null || value === undefined) return html`<span class="muted">null</span>`;
  const text = cellText(value, type);
  if (text.length <= maxShown && !text.includes('\n')) return html`<span>${text}</span>`;
  return html`<button
    type="button"
    class="long-value"
    aria-label="Show ${label}: ${text.slice(0, maxShown)}"
    onClick=${(event: MouseEvent) => onOpen(event.currentTarget as HTMLElement)}
  >
    ${text.slice(0, maxShown)}…
  </button>`;
}

/** A whole value beside the rows. Escape closes it. */
function ValuePanel({
  opened: { title, value },
  onClose,
}: {
  readonly opened: OpenedValue;
  readonly onClose: () => void;
}): View {
  const heading = useRef<HTMLHeadingElement>(null);
  // At once: the next key is for the panel.
  useLayoutEffect(() => {
    heading.current?.focus();
    heading.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return html`<section
    class="value-panel"
    aria-label="Value"
    onKeyDown=${(event: KeyboardEvent) => {
      if (event.key === 'Escape') onClose();
    }}
  >
    <header>
      <h2 ref=${heading} tabindex="-1">${title}</h2>
      <${Button} kind="quiet" label="Close the value" onClick=${onClose}>×<//>
    </header>
    <${CopyBlock} label="value" text=${wholeText(value)} />
  </section>`;
}
