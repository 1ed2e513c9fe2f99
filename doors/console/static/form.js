// A form from the schema of a tool's arguments. What is wrong is said by the service, whose text the page shows.
import { html } from "/vendor/htm-preact.js";
import { T } from "/texts.js";

// What kind of field a schema needs, and whether it may be null.
export function kindOf(schema = {}) {
  const choices = schema.anyOf || schema.oneOf;
  if (choices) {
    if (choices.every((choice) => "const" in choice)) {
      return { kind: "choice", choices: choices.map((choice) => ({ value: choice.const, title: choice.description || choice.title })) };
    }
    const real = choices.filter((choice) => choice.type !== "null");
    if (real.length === 1 && choices.length === 2) return kindOf(real[0]);
    return { kind: "json" };
  }
  if (schema.enum) return { kind: "choice", choices: schema.enum.filter((value) => value !== null).map((value) => ({ value })) };
  let type = schema.type;
  if (Array.isArray(type)) {
    const real = type.filter((one) => one !== "null");
    type = real.length === 1 ? real[0] : undefined;
  }
  if (type === "boolean") return { kind: "choice", choices: [{ value: true, title: T.tools.yes }, { value: false, title: T.tools.no }] };
  if (type === "number" || type === "integer") return { kind: "number" };
  if (type === "string") return { kind: "text", hidden: schema.writeOnly === true };
  if (type === "array" && ["string", "number", "integer"].includes(schema.items?.type)) return { kind: "lines", of: schema.items.type };
  return { kind: "json" };
}

// Puts a field's text into the value that it stands for; undefined where it is left out.
export function valueOf(name, { kind, choices, of }, text) {
  if (text === undefined || text === "") return undefined;
  // What is no number, or one that would lose digits here, goes as text: the service reads it, or says what is wrong.
  const number = (text) => {
    const value = Number(text);
    const exact = Number.isSafeInteger(value) || !/^\s*-?\d+\s*$/.test(text);
    return text.trim() !== "" && Number.isFinite(value) && exact ? value : text.trim();
  };
  if (kind === "choice") return choices[Number(text)]?.value;
  if (kind === "number") return number(text);
  if (kind === "lines") {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    return of === "string" ? lines : lines.map(number);
  }
  if (kind === "json") {
    try {
      return JSON.parse(text);
    } catch {
      throw new Error(T.tools.notJson(name));
    }
  }
  return text;
}

// The text of a field for a value.
export function textOf({ kind, choices }, value) {
  if (value === undefined || value === null) return "";
  if (kind === "choice") {
    const at = choices.findIndex((choice) => choice.value === value);
    return at < 0 ? "" : String(at);
  }
  if (kind === "lines" && Array.isArray(value)) return value.join("\n");
  if (kind === "json") return JSON.stringify(value, null, 2);
  return String(value);
}

export const fieldsOf = (schema) => Object.entries(schema?.properties || {}).map(([name, of]) => ({ name, schema: of, ...kindOf(of), required: (schema.required || []).includes(name) }));

// The arguments that the texts of a form stand for.
export function argumentsOf(fields, texts) {
  const args = {};
  for (const field of fields) {
    const value = valueOf(field.name, field, texts[field.name]);
    if (value !== undefined) args[field.name] = value;
  }
  return args;
}

export function Form({ fields, texts, onChange }) {
  if (fields.length === 0) return html`<p>${T.tools.noArguments}</p>`;
  return html`<div class="form">${fields.map((field) => {
    const id = `field-${field.name}`;
    const set = (event) => onChange({ ...texts, [field.name]: event.target.value });
    const text = texts[field.name] ?? "";
    const notes = [
      field.required ? T.tools.required : null,
      field.schema.default !== undefined && field.schema.default !== null ? T.tools.byDefault(JSON.stringify(field.schema.default)) : null,
      field.kind === "lines" ? T.tools.lines : field.kind === "json" ? T.tools.json : null,
    ].filter(Boolean);
    const shared = { id, "aria-describedby": `${id}-help`, "aria-required": field.required };
    let control;
    if (field.kind === "choice") {
      control = html`<select ...${shared} value=${text} onChange=${set}>
        <option value="">${field.required ? "" : T.tools.leaveOut}</option>
        ${field.choices.map(({ value, title }, at) => html`<option value=${String(at)} selected=${text === String(at)}>${title && typeof value === "boolean" ? title : title ? `${value}: ${title}` : String(value)}</option>`)}
      </select>`;
    } else if (field.kind === "lines" || field.kind === "json") {
      control = html`<textarea ...${shared} rows="3" value=${text} onInput=${set}></textarea>`;
    } else {
      control = html`<input ...${shared} type=${field.hidden ? "password" : "text"} inputmode=${field.kind === "number" ? "decimal" : undefined} autocomplete="off" value=${text} onInput=${set} />`;
    }
    return html`<div class="field">
      <label for=${id}>${field.name}${notes.length ? html` <small>${notes.join(" · ")}</small>` : null}</label>
      ${control}
      <p class="help" id=${`${id}-help`}>${field.schema.description || ""}</p>
    </div>`;
  })}</div>`;
}
