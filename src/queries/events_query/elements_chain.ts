/** An element of a page in results. */
export interface PageElement {
  readonly order: number;
  readonly tag_name: string | null;
  readonly attr_class: readonly string[] | null;
  readonly text: string | null;
  readonly href: string | null;
  readonly attr_id: string | null;
  readonly nth_child: number | null;
  readonly nth_of_type: number | null;
  readonly attributes: Readonly<Record<string, string>>;
}

/** Elements are separated by `;` outside of quotes. */
const elementPattern = /(?:[^\s;"]|"(?:\\[\s\S]|[^"\\])*")+/g;
/** Tag and classes are separated by `.` and end at the first `:name=`; a class may itself contain colons. */
const attributesStart = /:(?=[a-zA-Z_0-9-]*=)/;
const attribute = /([^"=]+)="((?:\\[\s\S]|[^"\\])*)"/g;

/** Parses a chain such as `a.link:href="/x"text="Go";div:nth-child="2"`, the innermost element first. */
export const readElementsChain = (chain: string): readonly PageElement[] =>
  [...chain.matchAll(elementPattern)].map(([text], order) => readElement(text, order));

function readElement(element: string, order: number): PageElement {
  const at = element.search(attributesStart);
  const [tag = '', ...classes] = (at === -1 ? element : element.slice(0, at)).split('.');
  const named = [...element.slice(at === -1 ? element.length : at + 1).matchAll(attribute)].map(
    ([, name = '', value = '']): readonly [string, string] => [name, value.replaceAll('\\"', '"')],
  );
  const {
    text = null,
    href = null,
    attr_id = null,
    'nth-child': child,
    'nth-of-type': ofType,
    ...attributes
  } = Object.fromEntries(named) as Readonly<Record<string, string | undefined>>;
  const known = classes.filter((name) => name !== '');
  return {
    order,
    tag_name: tag === '' ? null : tag,
    attr_class: known.length === 0 ? null : known,
    text,
    href,
    attr_id,
    nth_child: numberIn(child),
    nth_of_type: numberIn(ofType),
    attributes: attributes as Readonly<Record<string, string>>,
  };
}

const numberIn = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
