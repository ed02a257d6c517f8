import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec';

/** What a source map has, of what is read here. */
export interface SourceMap {
  readonly sources: readonly string[];
  readonly names: readonly string[];
  readonly mappings: string;
}

/**
 * Keeps the lines of our sources in a map and drops columns and names, which are most of it.
 * @param packages what it keeps of packages: their files, as if each had one line, or nothing
 */
export function withLinesAlone<Map extends SourceMap>(
  map: Map,
  { packages }: { readonly packages: 'files' | 'nothing' },
): Map {
  const isPackage = map.sources.map((source) => source.includes('node_modules/'));
  const sources = map.sources.filter((_, index) => packages === 'files' || isPackage[index] !== true);
  const numbers = map.sources.map((source) => sources.indexOf(source));
  const mappings = decode(map.mappings).map((segments) => {
    let [file, line] = [-1, -1];
    return segments.flatMap(([column, segmentFile, segmentLine]): SourceMapSegment[] => {
      if (segmentFile === undefined || segmentLine === undefined) return [];
      const kept = numbers[segmentFile] ?? -1;
      if (kept === -1) {
        const endsKept = file !== -1;
        file = -1;
        return endsKept ? [[column]] : [];
      }
      const keptLine = isPackage[segmentFile] === true ? 0 : segmentLine;
      if (kept === file && keptLine === line) return [];
      [file, line] = [kept, keptLine];
      return [[column, file, line, 0]];
    });
  });
  return { ...map, sources, names: [], mappings: encode(mappings) };
}

const beforeMap = '\n//# sourceMappingURL=data:application/json;base64,';

/** Appends a source map to code. @param map `file` is the name of the code in stack traces */
export const withInlineSourceMap = (code: string, map: SourceMap & { readonly file: string }): string =>
  `${code}${beforeMap}${Buffer.from(JSON.stringify(map)).toString('base64')}`;

/** Reads the source map that code ends with. @throws SyntaxError when it has none */
export const readInlineSourceMap = (code: string): SourceMap =>
  JSON.parse(Buffer.from(code.split(beforeMap)[1] ?? '', 'base64').toString()) as SourceMap;
