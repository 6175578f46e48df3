for(const head of document.querySelectorAll('.sortable th'))head.onclick=()=>{
const at=head.cellIndex,body=head.closest('table').tBodies[0],up=head.dataset.up!=='1';
head.dataset.up=up?'1':'0';
const key=row=>{const text=row.cells[at].textContent,number=parseFloat(text.replace(/,/g,''));
return isNaN(number)?text:number};
[...body.rows].sort((a,b)=>{const x=key(a),y=key(b);
return(x<y?-1:x>y?1:0)*(up?1:-1)}).forEach(row=>body.append(row))};
