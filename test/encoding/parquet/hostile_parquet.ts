/** Parquet files with any claims, written without a library. */
/** A number in Thrift's compact protocol. */
export const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
const zigzag = (value: number): number[] => varint(value * 2);
const text = (value: string): number[] => [...varint(value.length), ...Buffer.from(value)];
const list = (type: number, items: readonly (readonly number[])[]): number[] => [
  0xf0 | type,
  ...varint(items.length),
  ...items.flat(),
];
/** A struct of fields: id, type and bytes. */
function struct(...fields: readonly (readonly [number, number, readonly number[]])[]): number[] {
  let last = 0;
  const bytes: number[] = [];
  for (const [id, type, value] of fields) {
    bytes.push(((id - last) << 4) | type, ...value);
    last = id;
  }
  return [...bytes, 0];
}
const [i32, i64, binary, lists, structs] = [5, 6, 8, 9, 12];

/** A data page, which may say anything of itself. */
interface Page {
  readonly body: Buffer;
  readonly uncompressed: number;
  readonly values: number;
  /** PLAIN by default. */
  readonly encoding?: number;
}

const pageBytes = ({ body, uncompressed, values, encoding = 0 }: Page): Buffer => {
  const header = struct(
    [1, i32, zigzag(0)],
    [2, i32, zigzag(uncompressed)],
    [3, i32, zigzag(body.length)],
    [
      5,
      structs,
      struct([1, i32, zigzag(values)], [2, i32, zigzag(encoding)], [3, i32, zigzag(3)], [4, i32, zigzag(3)]),
    ],
  );
  return Buffer.concat([Buffer.from(header), body]);
};

/** A file of one row group with the two columns of a key, which have the same page. */
export function parquetOf(
  page: Page,
  { rows = page.values, codec = 0 }: { readonly rows?: number; readonly codec?: number } = {},
): Buffer {
  const chunk = pageBytes(page);
  const column = (name: string, at: number): number[] =>
    struct(
      [2, i64, zigzag(at)],
      [
        3,
        structs,
        struct(
          [1, i32, zigzag(6)],
          [2, lists, list(i32, [zigzag(0)])],
          [3, lists, list(binary, [text(name)])],
          [4, i32, zigzag(codec)],
          [5, i64, zigzag(rows)],
          [6, i64, zigzag(chunk.length)],
          [7, i64, zigzag(chunk.length)],
          [9, i64, zigzag(at)],
        ),
      ],
    );
  const names = ['_inserted_at', 'uuid'];
  const footer = struct(
    [1, i32, zigzag(1)],
    [
      2,
      lists,
      list(structs, [
        struct([4, binary, text('schema')], [5, i32, zigzag(2)]),
        ...names.map((name) =>
          struct([1, i32, zigzag(6)], [3, i32, zigzag(0)], [4, binary, text(name)], [6, i32, zigzag(0)]),
        ),
      ]),
    ],
    [3, i64, zigzag(rows)],
    [
      4,
      lists,
      list(structs, [
        struct(
          [
            1,
            lists,
            list(
              structs,
              names.map((name, index) => column(name, 4 + index * chunk.length)),
            ),
          ],
          [2, i64, zigzag(2 * chunk.length)],
          [3, i64, zigzag(rows)],
        ),
      ]),
    ],
  );
  return withFooter(Buffer.concat([Buffer.from('PAR1'), chunk, chunk]), Buffer.from(footer));
}

/** The bytes before a footer, and the footer with its end. */
export function withFooter(before: Buffer, footer: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([before, footer, length, Buffer.from('PAR1')]);
}
