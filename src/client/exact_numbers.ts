/** Stands before the digits of a number that is a string in JSON for a moment. No text of others contains it. */
const mark = `exact ${Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join('')} `;
const markedNumber = new RegExp(`"${mark}([^"]*)"`, 'g');
let isMarking = false;

/**
 * A number of JSON that has more digits than a number of JavaScript, such as 9007199254740993. It is printed with all of them,
 * is a string in the JSON of `JSON.stringify` and a number in that of `stringifyJson`, and calculates as the nearest number.
 */
export class ExactNumber {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }

  valueOf(): number {
    return Number(this.#text);
  }

  toJSON(): string {
    return isMarking ? mark + this.#text : this.#text;
  }
}

/** The digits of a number without zeros at their ends, and the power of ten of the last one. */
function significant(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = whole + fraction;
  const kept = digits.replace(/0+$/, '');
  const power = Number(exponent) - fraction.length + digits.length - kept.length;
  const shown = kept.replace(/^0+/, '');
  return shown === '' ? '' : `${shown}e${String(power)}`;
}

/** Every number of so many characters, without an exponent, is a number of JavaScript. */
const exactLength = 15;

/** A number of JavaScript if that has all digits. @param text as PostgreSQL and JSON write numbers */
export function exactNumber(text: string): number | ExactNumber {
  const value = Number(text);
  if (text.length <= exactLength && !/e/i.test(text)) return value;
  return significant(String(value)) === significant(text) ? value : new ExactNumber(text);
}

/** Texts with a number that JavaScript may not hold: many digits, or an exponent. */
const mayBeLong = /\d[\d.]{15}|\d[eE][+\d]/;
/** A string of JSON, or a number. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parses JSON; the numbers that JavaScript cannot hold are ExactNumber. @throws SyntaxError */
export function parseJson(text: string): unknown {
  if (!mayBeLong.test(text)) return JSON.parse(text);
  const marked = text.replaceAll(token, (found) => {
    if (found.startsWith('"') || typeof exactNumber(found) === 'number') return found;
    return `"${mark}${found}"`;
  });
  const parsed: unknown = JSON.parse(marked);
  return marked === text ? parsed : restored(parsed);
}

/** A parsed value whose marked strings are numbers. A reviver, or a list of all entries, would take more memory than the value. */
function restored(value: unknown): unknown {
  if (typeof value === 'string' && value.startsWith(mark)) return new ExactNumber(value.slice(mark.length));
  if (Array.isArray(value))
    for (let index = 0; index < value.length; index += 1) value[index] = restored(value[index]);
  else if (typeof value === 'object' && value !== null)
    for (const key of Object.keys(value)) {
      const inner: unknown = value[key as keyof typeof value];
      const changed = restored(inner);
      // An assignment to `__proto__` would be another thing.
      if (changed !== inner) Object.defineProperty(value, key, { value: changed });
    }
  return value;
}

/** JSON that `write` makes with `JSON.stringify`, where each ExactNumber is a number with all of its digits. */
export function withExactNumbers(write: () => string): string {
  isMarking = true;
  try {
    const text = write();
    return text.includes(mark) ? text.replaceAll(markedNumber, '$1') : text;
  } finally {
    isMarking = false;
  }
}

/** Writes JSON; each ExactNumber is a number with all of its digits. @throws RangeError if the text is too long */
export const stringifyJson = (value: unknown, indent?: number): string =>
  withExactNumbers(() => JSON.stringify(value, undefined, indent));

/** The first integer of a JSON text that JavaScript would round; undefined if there is none. */
export function roundedInteger(text: string): string | undefined {
  if (!mayBeLong.test(text)) return undefined;
  for (const [found] of text.matchAll(token))
    if (/^-?\d+$/.test(found) && typeof exactNumber(found) !== 'number') return found;
  return undefined;
}
