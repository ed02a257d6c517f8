import { useSignal } from '@preact/signals';
import { Button } from '../../components/button.ts';
import { Table, type Column } from '../../components/table.ts';
import { html, type View } from '../../html.ts';
import { textOfValue, valueKindOf, type QueryResult } from './query_result.ts';

type NumberedRow = readonly [number: number, row: readonly unknown[]];

/** Rows that are drawn at once: thousands of cells make a browser slow. */
const pageRows = 200;
/** Longer values are cut; a title shows more of them. */
const maxShown = 200;
const maxTitle = 2_000;

/** The rows of a result. */
export function ResultTable({ result }: { readonly result: QueryResult }): View {
  const shown = useSignal(pageRows);
  const columns = result.types.map(([name, type], index): Column<NumberedRow> => ({
    header: distinctName(result.types, name, index),
    align: valueKindOf(type) === 'number' ? 'right' : 'left',
    render: ([, row]) => html`<${Value} value=${row[index]} />`,
  }));
  const rows = result.results.slice(0, shown.value).map((row, number): NumberedRow => [number, row]);
  const hidden = result.results.length - rows.length;
  return html`<div class="query-result">
    <${Table}
      caption="Result of the query"
      columns=${columns}
      rows=${rows}
      rowKey=${([number]: NumberedRow) => String(number)}
    />
    ${
      hidden > 0 &&
      html`<${Button}
        onClick=${() => {
          shown.value += pageRows;
        }}
        >Show ${Math.min(pageRows, hidden)} more of ${hidden}<//
      >`
    }
  </div>`;
}

/** Columns can have the same name; their headers cannot. */
function distinctName(types: QueryResult['types'], name: string, index: number): string {
  const earlier = types.slice(0, index).filter(([other]) => other === name).length;
  return earlier === 0 ? name : `${name} (${earlier + 1})`;
}

function Value({ value }: { readonly value: unknown }): View {
  if (value === null || value === undefined) return html`<span class="muted">null</span>`;
  const text = textOfValue(value);
  return text.length > maxShown
    ? html`<span title=${text.slice(0, maxTitle)}>${text.slice(0, maxShown)}…</span>`
    : html`<span>${text}</span>`;
}
