import { html, type Content, type View } from '../html.ts';
import { isTerm, Term } from './term.ts';

/** A column of a table. */
export interface Column<Row> {
  readonly header: string;
  readonly render: (row: Row) => Content;
  /** Numbers stand right, so that their digits align. */
  readonly align?: 'left' | 'right';
  /** Hides the column on narrow screens. */
  readonly secondary?: boolean;
  /** Makes the header a button that sorts the rows. */
  readonly onSort?: () => void;
  /** How the rows are sorted by the column. */
  readonly sorted?: 'ascending' | 'descending' | undefined;
}

const sortSigns = { ascending: '↑', descending: '↓' };

/** A name, which explains itself if its word needs it. */
const explained = (name: string): Content => (isTerm(name) ? html`<${Term} name=${name} />` : name);

/** The name of a column, or a button that sorts by it. */
const headerOf = <Row>({ header, onSort, sorted }: Column<Row>): Content =>
  onSort === undefined
    ? explained(header)
    : html`<button type="button" class="sort" onClick=${onSort}>
        ${header}${sorted && html` <span aria-hidden="true">${sortSigns[sorted]}</span>`}
      </button>`;

/** Names with their values, in columns that fill the width; a `wide` one has a line. `look` adds classes. */
export function Facts({
  facts,
  look = '',
}: {
  readonly facts: readonly (readonly [name: string, value: Content, width?: 'wide'])[];
  readonly look?: string;
}): View {
  return html`<dl class="facts ${look}">
    ${facts.map(
      ([name, value, width]) =>
        html`<div key=${name} class=${width && 'fact-wide'}>
          <dt>${explained(name)}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** A table. On a phone, unless it is wide, each row becomes a block with its headers beside the values. */
export function Table<Row>({
  caption,
  columns,
  rows,
  rowKey,
  empty,
  isWide = false,
}: {
  /** What the table lists, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** Shown instead of a table without rows. */
  readonly empty?: Content;
  /** One line a row, as wide as its columns, which scrolls sideways also on a phone. */
  readonly isWide?: boolean;
}): View {
  if (rows.length === 0 && empty) return html`<div>${empty}</div>`;
  const classOf = ({ align, secondary }: Column<Row>) =>
    [align === 'right' && 'right figures', secondary && 'secondary'].filter(Boolean).join(' ');
  return html`<div
    class="table-scroll"
    role=${isWide ? 'region' : undefined}
    aria-label=${isWide ? caption : undefined}
    tabindex=${isWide ? 0 : undefined}
  >
    <table class="table ${isWide ? 'table-wide' : ''}">
      <caption class="visually-hidden">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map((column) => html`<th key=${column.header} scope="col" class=${classOf(column)} aria-sort=${column.sorted}>${headerOf(column)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr key=${rowKey(row)}>
              ${columns.map(
                (column) =>
                  html`<td key=${column.header} class=${classOf(column)} data-label=${column.header}>
                    ${column.render(row)}
                  </td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
